"""The report's page: its colours, what it may load and run, the data packed into it."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rewriter.report.gather import gather
from rewriter.report.packed import packed
from rewriter.report.palette import DARK, LIGHT, SHAPES, STEPS, TEXT, contrast, heat
from rewriter.report.queries import code
from tests import report_folder
from tests.report_folder import MALICE, data, unpacked

folder, page = report_folder.folder, report_folder.page  # fixtures
STATIC = Path(__file__).parent.parent / "rewriter" / "report" / "static"
PALETTES = {"light": LIGHT, "dark": DARK}


# Colours


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#123456", "#123456") == 1
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # the known limit


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
@pytest.mark.parametrize(("wanted", "pairs"), [(4.5, TEXT), (3.0, SHAPES)], ids=["text", "shapes"])
def test_contrasts_reach_aa(
    palette: dict[str, str], wanted: float, pairs: list[tuple[str, str]]
) -> None:
    found = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < wanted} == {}


def test_palettes_have_the_same_names_and_light_tells_all_apart() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)  # plots are recoloured by value


def test_style_takes_every_colour_from_the_palette() -> None:
    style = "".join(path.read_text() for path in STATIC.glob("*.css"))
    assert re.findall(r"#[0-9a-f]{3,8}\b(?![^{]*\{)|rgb|hsl", style) == []
    used = set(re.findall(r"var\(--([\w-]+)", style)) - {"sans", "mono", "share"}
    assert used <= LIGHT.keys()


def test_heat_runs_through_all_steps() -> None:
    steps = [heat(share / 100)[0] for share in range(101)]
    assert list(dict.fromkeys(steps)) == [f"heat-{step}" for step in range(STEPS)]
    assert heat(-1)[0] == "heat-0"
    assert heat(2)[0] == "heat-6"
    pairs = {(ink, fill) for fill, ink in map(heat, (0, 0.2, 0.3, 0.5, 0.6, 0.8, 1))}
    assert pairs <= set(TEXT)


# The file


class Ids(HTMLParser):
    """All ids and all addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href", "action", "srcset"}:
                self.links.append(value or "")


def test_page_asks_for_nothing_and_its_ids_are_distinct(page: str) -> None:
    found = Ids()
    found.feed(page)
    assert [link for link in found.links if not link.startswith("#")] == []
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) <= {"#"}


def test_policy_allows_the_own_script_alone(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    said = policy.group(1).replace("&#39;", "'")
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in said
    assert said.startswith("default-src 'none';")
    assert "http" not in said


def test_scripts_never_parse_data_as_markup() -> None:
    script = "".join(path.read_text() for path in STATIC.glob("*.js"))
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|fetch\("
    )
    assert re.findall(forbidden, script) == []


def test_text_from_data_is_escaped(page: str) -> None:
    assert "<b>bold" not in page
    assert "a &lt;b&gt;bold name" in page
    assert "1 &lt;/pre&gt;" in page
    assert "alert(" not in page  # the queries are packed
    assert MALICE in data(page, "list")["strings"]


def test_packed_data_cannot_end_its_element() -> None:
    given = {"text": "</script><!--", "lone": "\ud800", "서울": [1, None]}
    assert set(packed(given)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/="
    )
    assert unpacked(packed(given)) == given | {"lone": "?"}
    assert packed(given) == packed(given)


def test_list_data(page: str) -> None:
    found = data(page, "list")
    assert found["ids"] == ["q1", "q2", "q3", "q4", "excluded"]
    assert (found["baseline"], found["main"]) == ("raw", "trained")
    assert found["measures"] == ["ndcg@3", "mrr@10"]
    assert found["names"] == {"ndcg@3": "NDCG@3", "mrr@10": "MRR@10"}
    trained = found["cells"]["lexical"]["trained"]
    assert trained["rank"] == [1, 0, 0, 2, 0]
    assert trained["values"]["ndcg@3"] == [1, 0, 0, 0.6309, None]
    texts = [*found["strings"], None]  # −1 is none
    assert [texts[number] for number in trained["rewrite"]] == [
        "list all days of a month",
        "closes pool",
        None,
        "서울시 예산 공고 일정",
        "nothing",
    ]
    assert [texts[number] for number in trained["failure"]] == [
        None,
        None,
        "no_answer_tag",
        None,
        None,
    ]
    assert [texts[number] for number in trained["text"]][2] == MALICE


def test_hit_data(page: str) -> None:
    found = data(page, "hits")
    ids = found["ids"]
    named = {
        system: [ids[number] for number in found["cells"]["semantic"][system]["hits"][0]]
        for system in ("raw", "trained")
    }
    assert named == {
        "raw": ["other-q1-1", "doc-q1", "other-q1-3", "other-q1-4"],
        "trained": ["doc-q1", "other-q1-2", "other-q1-3", "other-q1-4"],
    }
    assert found["cells"]["semantic"]["raw"]["scores"][0] == [4, 3, 2, 1]
    # No system found q3's document: qrels.trec has it.
    assert [ids[number] for number in found["judged"][2][::2]] == ["doc-q3"]
    assert found["judged"][2][1::2] == [1]
    assert found["source"][4] == -1
    texts = data(page, "texts")
    at = ids.index("doc-q1")
    assert texts["titles"][at] == "Title of q1 <b>"
    assert texts["texts"][at].startswith("Text of q1. Text")
    assert texts["texts"][ids.index("other-q1-2")] == ""


def test_order_is_by_the_largest_change_and_names_judged_documents_first(folder: Path) -> None:
    coded = code(gather(folder))
    assert [query for query, _ in coded.order][:3] == ["q2", "q1", "q4"]
    wanted = [coded.documents[number] for number in dict(coded.order)["q1"]]
    assert wanted[:3] == ["doc-q1", "other-q1-1", "other-q1-2"]
    assert len(wanted) == len(set(wanted)) == 5
