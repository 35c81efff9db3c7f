"""The report as a file: what it holds, what it refuses, colours, plots, tables."""

import gzip
import json
import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rewriter import cli
from rewriter.evaluation import summarise, write_result
from rewriter.records import RecordError, write_lines, write_records
from rewriter.report import ReportError, numbers, summary, write
from rewriter.report.diagnostics import diagnostics
from rewriter.report.files import Document
from rewriter.report.gather import gather
from rewriter.report.matrix import Matrix
from rewriter.report.packed import packed
from rewriter.report.palette import DARK, LIGHT, SHAPES, STEPS, TEXT, contrast, heat
from rewriter.report.plots import Plot, draw, transfer
from rewriter.report.plots.changes import outline
from rewriter.report.plots.curves import smooth
from rewriter.report.plots.drawing import inline
from rewriter.report.queries import code
from rewriter.report.texts import pack
from rewriter.report.thumbnails import thumbnails
from rewriter.tables import heading
from tests.report_folder import MALICE, add_matrix, add_pages, add_training, fill, record, records

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "rewriter" / "report" / "static"
PALETTES = {"light": LIGHT, "dark": DARK}


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(b64decode(text)))


def data(page: str, name: str) -> Any:
    found = re.search(rf'id="data-{name}">([A-Za-z0-9+/=]*)<', page)
    assert found is not None
    return unpacked(found.group(1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = fill(tmp_path_factory.mktemp("runs") / "a <b>bold name")
    add_training(place)
    add_matrix(place)
    write_lines([json.dumps({"versions": {"torch": "1 </pre>"}})], place / "facts.json")
    write(place)
    return place


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


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


# Numbers and tables


def test_numbers() -> None:
    assert numbers.value(0.46984) == "0.470"
    assert [numbers.change(x) for x in (0.0992, -0.29067, -0.0001)] == [
        "+0.099",
        "−0.291",
        "+0.000",
    ]
    found = {"low": -0.0118, "high": 0.2088}
    assert numbers.interval(found) == "[−.012, .209]"
    assert numbers.interval(found, signed=True) == "[−.012, +.209]"
    assert numbers.interval({"low": 0.9, "high": 1.0}) == "[.900, 1.000]"
    assert [numbers.p(x) for x in (0.0823, 0.0001, 1.0)] == [".082", "< .001", "1.000"]
    keys = ("ndcg@3", "mrr", "recall@10", "graded_ndcg@3", "ndcg_exp@5", "graded_ndcg_exp@5")
    assert [heading(key) for key in keys] == [
        "NDCG@3",
        "MRR",
        "Recall@10",
        "graded NDCG@3",
        "NDCG@5 (2^grade)",
        "graded NDCG@5 (2^grade)",
    ]
    sides = [numbers.sign({"low": low, "high": high}) for low, high in ((1, 2), (-2, -1), (-1, 1))]
    assert sides == ["gain", "loss", ""]


def test_table_of_systems_and_backends(folder: Path) -> None:
    source = gather(folder)
    assert [(c.name, c.said) for c in summary.columns(source)] == [
        ("lexical", "n = 4, 1 excluded"),
        ("semantic", "n = 4, 1 excluded"),
    ]
    raw, trained = summary.rows(source)
    assert (raw.label, trained.label) == ("raw query", "trained rewriter")
    # raw: .63093, 1, 0, .5; trained: 1, 0, 0, .63093
    assert (raw.cells[0].mean, raw.cells[0].change) == ("0.533", "")
    cell = trained.cells[1]
    assert (cell.mean, cell.change, cell.games, cell.side) == ("0.408", "−0.125", "2 / 1 / 1", "")
    assert (raw.fallbacks, trained.fallbacks) == ("0", "1")
    first, second = summary.verdicts(source)
    assert (first["backend"], first["before"], first["after"]) == ("lexical", "0.533", "0.408")
    assert (second["change"], second["said"], second["n"]) == ("−0.125", "no clear difference", "4")


def test_numbers_of_the_page_say_what_they_are(page: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition('id="plots"')[0]))
    for said in (
        "n = 4, 1 excluded",
        "2 / 1 / 1",
        "Fallbacks: queries whose rewrite failed",
        "Intervals: 95% percentile bootstrap over queries",
        "paired by query",
    ):
        assert said in text


def test_where_systems_differ_counts_are_ranges() -> None:
    means = [
        {"ndcg@3": {"n": n}, "failed": failed, "excluded": 0} for n, failed in ((5, 0), (3, 2))
    ]
    assert summary.counted(means) == "n = 3–5, 0–2 failed"


def test_parts_by_origin(folder: Path) -> None:
    parts = summary.breakdowns(gather(folder))["origin"]
    raw = [part for part in parts if (part["backend"], part["system"]) == ("lexical", "raw query")]
    # human: q2 1; synthetic: .63093, 0, .5; macro (1 + .37698) / 2, micro .53273
    assert [(part["part"], part["mean"], part["n"]) for part in raw] == [
        ("human", "1.000", "1"),
        ("synthetic", "0.377", "3"),
        ("macro average", "0.688", ""),
        ("micro average", "0.533", ""),
    ]


def test_parts_show_the_collections_own_measure_and_what_is_left_out() -> None:
    rows = [r for r in records(backends=["lexical"]) if r.system == "raw"]
    result = summarise(rows, samples=100, primary="mrr@10")
    parts = summary.breakdowns(gather_like(result))["origin"]
    shown = [(p["measure"], p["part"], p["mean"], p["n"], p["left"]) for p in parts]
    # One query of the synthetic ones has nothing relevant. MRR: human 1; others 1/2, 0, 1/3.
    assert shown == [
        ("NDCG@3", "human", "1.000", "1", ""),
        ("NDCG@3", "synthetic", "0.377", "3", "1 excluded"),
        ("NDCG@3", "macro average", "0.688", "", ""),
        ("NDCG@3", "micro average", "0.533", "", ""),
        ("MRR@10", "human", "1.000", "1", ""),
        ("MRR@10", "synthetic", "0.278", "3", "1 excluded"),
        ("MRR@10", "macro average", "0.639", "", ""),
        ("MRR@10", "micro average", "0.458", "", ""),
    ]


def test_comparisons_name_p_and_queries_needed() -> None:
    found = {"diff": 0.1, "low": 0.05, "high": 0.15, "win": 3, "tie": 1, "loss": 0}
    trained = {
        "vs_raw": found,
        "p_vs_raw": 0.02,
        "p_holm_vs_raw": 0.04,
        "queries_needed": 1234,
        "primary_vs_raw": {"measure": "recall@5", **found, "n": 4, "p": 0.5},
    }
    source = gather_like({"lexical": {"raw": {}, "trained": trained}})
    headline, primary = summary.comparisons(source)
    assert (headline["measure"], headline["p"], headline["holm"]) == ("NDCG@3", ".020", ".040")
    assert (headline["needed"], headline["side"]) == ("1,234", "gain")
    assert (primary["measure"], primary["p"], primary["holm"]) == ("Recall@5", ".500", "–")


def gather_like(result: dict[str, Any]) -> Any:
    class Like:
        baseline = "raw"
        label = staticmethod(lambda name: name)

    like: Any = Like()
    like.result = result
    return like


def test_markdown_table(folder: Path) -> None:
    text = (folder / "table.md").read_text(encoding="utf-8")
    assert "| lexical, 4 test queries | NDCG@3 [95% CI] | MRR@10 | vs raw [95% CI] |" in text
    assert re.search(
        r"\| trained rewriter \| 0\.408 \[.*\] \| .* \| -0\.125 \[.*\] \| 2/1/1 \|", text
    )
    assert "Queries left out, having no relevant document: 1." in text
    assert "semantic, 4 test queries" in text


def test_diagnostics_become_tables() -> None:
    found = diagnostics(
        {"lexical": {"trained": {"length": 9.5, "n": 1200, "said": "x"}}, "note": 3}
    )
    assert [(t.heading, t.columns, t.rows) for t in found] == [
        ("lexical", ["length", "n"], [("trained", ["9.500", "1,200"])])
    ]
    assert [t.rows for t in diagnostics({"a": {"x": 1}, "b": {"y": 2}})] == [
        [("a", ["1", "–"]), ("b", ["–", "2"])]
    ]
    assert diagnostics(None) == diagnostics([1]) == []


# Plots


def test_every_plot_is_written_as_svg_and_png(folder: Path) -> None:
    names = {path.name for path in (folder / "plots").iterdir()}
    stems = {
        "means-lexical",
        "means-semantic",
        "changes-lexical-trained",
        "changes-semantic-trained",
        "curves-held-out",
        "curves-reward",
        "curves-length",
        "curves-no-signal",
        "transfer",
    }
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    for name in names:
        head = (folder / "plots" / name).read_bytes()[:8]
        assert head == (b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"<?xml ve")


def test_plots_say_their_figures(folder: Path, tmp_path: Path) -> None:
    sections = draw(gather(folder), tmp_path)
    captions = {plot.name: plot.caption for section in sections for plot in section.plots}
    assert captions["means-lexical"] == "n = 4 queries"
    assert captions["changes-lexical-trained"] == "2 better, 1 equal, 1 worse; n = 4"
    assert captions["curves-held-out"] == "lexical 0.250 at step 0, best 0.500 at 4"
    assert "n = 80" in next(s.note for s in sections if s.name == "curves")
    svgs = {plot.name: plot.svg for section in sections for plot in section.plots}
    assert "[.700, .900]" in svgs["transfer"]
    assert ">trained rewriter<" in svgs["means-lexical"]


def test_inlined_plots_use_the_pages_colours_alone(page: str, folder: Path) -> None:
    plots = re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)
    assert len(plots) == 9
    for plot in plots:
        assert re.findall(r"(?:fill|stroke|color): ?#\w+", plot) == []
        assert "<style" not in plot
        assert 'role="img" aria-label="' in plot
    saved = (folder / "plots" / "means-lexical.svg").read_text()
    assert LIGHT["muted"] in saved
    assert "var(--" not in saved


def test_same_folder_gives_the_same_plot_files(folder: Path, tmp_path: Path) -> None:
    draw(gather(folder), tmp_path)
    for path in tmp_path.glob("*.svg"):
        assert path.read_bytes() == (folder / "plots" / path.name).read_bytes()


def test_inline_keeps_names_apart_and_escapes_what_is_said() -> None:
    svg = (
        '<?xml?>\n<svg width="9pt" height="5pt" viewBox="0 0 9 5"><defs><style>*{}</style></defs>'
        '<path id="p1" style="fill: #ffffff; stroke: #123456"/><use xlink:href="#p1"/>'
        '<g clip-path="url(#p1)" style="font: 9px \'DejaVu Sans\', sans-serif"/></svg>'
    )
    found = inline(svg, "x", 'a "b"')
    assert found == (
        '<svg role="img" aria-label="a &quot;b&quot;" viewBox="0 0 9 5"><defs></defs>'
        '<path id="x-p1" style="fill: var(--bg); stroke: #123456"/><use xlink:href="#x-p1"/>'
        '<g clip-path="url(#x-p1)" style="font: 9px var(--sans)"/></svg>'
    )


def test_outline_of_sorted_changes() -> None:
    assert outline([1, 1, 0.5, 0, 0, -1]) == ([0, 2, 3, 5, 6], [1, 0.5, 0, -1, -1])
    places, values = outline([n / 5000 for n in range(5000, 0, -1)])
    assert len(places) == len(values) == 418  # every 12th of 5,000, and the end
    assert (places[0], places[1], places[-1]) == (0, 12, 5000)


def test_smooth_is_a_centred_mean() -> None:
    assert smooth([0, 3, 6]) == [1.5, 3, 4.5]
    assert smooth([5] * 100) == [5] * 100
    assert (
        smooth([0.0] * 20 + [41.0] + [0.0] * 20)[18:23] == [41 / 5] * 5
    )  # 41 values: two on each side


# Sizes


def test_texts_are_cut_alike_until_they_fit() -> None:
    documents = {
        f"d{n}": Document(f"T{n}", " ".join(str(n * k) for k in range(600))) for n in range(50)
    }
    ids = [*documents, "unknown"]
    whole = unpacked(pack(documents, ids))
    assert whole["cut"] == 1_500
    small = pack(documents, ids, room=12_000)
    cut = unpacked(small)
    assert len(small) <= 12_000
    assert 0 < cut["cut"] < 1_500
    assert {len(text) for text in cut["texts"][:-1]} <= {
        cut["cut"] + 1,
        cut["cut"],
    }  # "…" at the end
    assert (cut["titles"][-1], cut["texts"][-1]) == ("", "")
    assert unpacked(pack(documents, ids, room=10)) == {"cut": 0, "titles": [], "texts": []}


def test_short_texts_stay_whole() -> None:
    found = unpacked(pack({"a": Document("A", "short")}, ["a"]))
    assert found == {"cut": 1_500, "titles": ["A"], "texts": ["short"]}


def pages(folder: Path, count: int) -> dict[str, Document]:
    from PIL import Image

    found = {}
    for number in range(count):
        path = folder / f"{number}.png"
        Image.effect_noise((300, 400), 60 + number).save(path)
        found[f"d{number}"] = Document("", "", path)
    return found


def test_thumbnails_of_the_largest_changes(tmp_path: Path) -> None:
    documents = pages(tmp_path, 3) | {"text": Document("", "no page")}
    ids = ["d0", "d1", "d2", "text"]
    order = [("q9", [2, 3]), ("q1", [2, 0])]
    found = thumbnails(documents, ids, order)
    assert found["queries"] == 2
    assert list(found["pages"]) == [2, 0]  # d1 is of no query
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(b64decode(found["pages"][2]))) as image:
        assert (image.format, image.size) == ("WEBP", (150, 200))


def test_thumbnails_lose_quality_then_queries(tmp_path: Path) -> None:
    documents = pages(tmp_path, 2)
    order = [("q1", [0]), ("q2", [1])]
    whole = sum(map(len, thumbnails(documents, ["d0", "d1"], order)["pages"].values()))
    less = thumbnails(documents, ["d0", "d1"], order, room=whole - 1)
    assert less["queries"] == 2
    assert sum(map(len, less["pages"].values())) < whole
    one = thumbnails(documents, ["d0", "d1"], order, room=len(_worst(documents, order)))
    assert (one["queries"], list(one["pages"])) == (1, [0])
    assert thumbnails(documents, ["d0", "d1"], order, room=0) == {"queries": 0, "pages": {}}


def _worst(documents: dict[str, Document], order: list[tuple[str, list[int]]]) -> str:
    """The first page at the lowest quality."""
    from rewriter.report.thumbnails import QUALITIES, _small, _webp

    image = documents["d0"].image
    assert image is not None
    return _webp(_small(image), QUALITIES[-1])


def test_pages_are_in_the_page(tmp_path: Path) -> None:
    add_pages(fill(tmp_path / "x"))
    page = write(tmp_path / "x").read_text(encoding="utf-8")
    found = data(page, "pages")
    assert found["queries"] == 4
    ids = data(page, "hits")["ids"]
    assert {ids[int(number)] for number in found["pages"]} == {f"doc-q{n}" for n in range(1, 5)}
    assert "Pages are shown small for the 4 queries with the largest changes" in page


# What else a folder may hold or lack


def test_folder_of_a_training_without_documents_or_judgements(tmp_path: Path) -> None:
    fill(tmp_path)
    for name in ("documents.jsonl", "qrels.trec"):
        (tmp_path / name).unlink()
    add_training(tmp_path)
    write_lines(["output: runs/demo"], tmp_path / "config.yaml")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert data(page, "texts")["texts"] == [""] * len(data(page, "hits")["ids"])
    assert data(page, "hits")["judged"][2] == []  # nobody found it, so that nobody knows it
    assert "output: runs/demo" in page
    assert "Held-out NDCG@3" in page


def test_result_is_computed_where_there_is_none(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "result.json").unlink()
    assert gather(tmp_path).result["lexical"]["raw"]["ndcg@3"]["mean"] == pytest.approx(0.5327324)


def test_without_a_baseline_there_are_no_changes(tmp_path: Path) -> None:
    rows = [row for row in records() if row.system == "trained"]
    write_records(rows, tmp_path / "records.jsonl")
    page = write(tmp_path).read_text(encoding="utf-8")
    found = data(page, "list")
    assert (found["baseline"], found["main"]) == (None, "trained")
    assert not list((tmp_path / "plots").glob("changes-*"))


def test_failed_search_of_one_system_leaves_the_pair_out(tmp_path: Path) -> None:
    rows = records(backends=["lexical"])
    rows[0] = replace(rows[0], metrics={}, hits=(), grades=(), error="HTTP 503")
    write_records(rows, tmp_path / "records.jsonl")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert "1 better, 1 equal, 1 worse; n = 3" in page
    assert "n = 3–4, 1 excluded, 0–1 failed" in page
    assert "HTTP 503" in data(page, "list")["strings"]


def test_excluded_query_of_percent_encoded_id(tmp_path: Path) -> None:
    fill(tmp_path)
    write_lines(["a%20b 0 doc%25 2", "q1 0 nothing 0"], tmp_path / "qrels.trec")
    judged = gather(tmp_path).judged
    assert judged["a b"] == {"doc%": 2.0}
    assert judged["q1"] == {"doc-q1": 1.0}  # from the hits; grade 0 is not relevant


def change(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: write_lines([text], folder / name)


def wrong_mean(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    result["semantic"]["trained"]["ndcg@3"]["mean"] = 0.5
    write_result(result, folder / "result.json")


def more_systems(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    result["lexical"]["hyde"] = result["lexical"]["raw"]
    write_result(result, folder / "result.json")


def other_split(folder: Path) -> None:
    rows = records()
    write_records([*rows[:-1], replace(rows[-1], split="validation")], folder / "records.jsonl")


def twice(folder: Path) -> None:
    write_records([record("raw", "q1", "x", None, 1)] * 2, folder / "records.jsonl")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (change("result.json", "{}"), r"result.json: no ndcg@3 of raw on lexical; remove"),
        (change("result.json", "{"), r"result.json is no JSON"),
        (
            wrong_mean,
            r"trained on semantic has ndcg@3 0.5000 of 4 queries, the records 0.4077 of 4",
        ),
        (more_systems, r"has \('lexical', 'hyde'\), of which there is no record"),
        (other_split, r"records of 2 splits \(test, validation\)"),
        (twice, r"has two records"),
        (lambda folder: (folder / "records.jsonl").write_text(""), r"records.jsonl is empty"),
        (change("qrels.trec", "q1 doc 1"), r"qrels.trec:1: 'q1 doc 1' is not"),
        (change("documents.jsonl", '{"title": "x"}'), r'documents.jsonl:1: no "id"'),
        (change("documents.jsonl", "[1]"), r"documents.jsonl:1: '\[1\]' is no JSON object"),
        (change("documents.jsonl", '{"id": "a", "image": "../x.png"}'), r"no file inside of"),
        (change("documents.jsonl", '{"id": "doc-q1", "image": "result.json"}'), r"is no image"),
        (change("matrix.json", '{"rows": ["a"], "columns": ["b"], "values": []}'), r"matrix.json"),
        (change("matrix.json", '{"rows": ["a"]}'), r"matrix.json.*wanted is"),
        (change("metrics.jsonl", "x"), r"metrics.jsonl:1 is no JSON"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    fill(tmp_path)
    spoil(tmp_path)
    with pytest.raises((ReportError, RecordError), match=said):
        write(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_file_that_is_no_utf8(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "qrels.trec").write_bytes(b"\xff")
    with pytest.raises(ReportError, match="is not UTF-8"):
        write(tmp_path)


def test_folder_without_records(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"no records.jsonl in .*; give the folder of"):
        write(tmp_path)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_missing_extra_is_named(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ReportError, match=rf'{package} is not installed; pip install "rlqr\[report\]"'
    ):
        write(tmp_path)


def test_systems_are_called_as_the_evaluation_called_them(tmp_path: Path) -> None:
    fill(tmp_path)
    systems = {"trained": {"label": "step 24 <i>"}, "raw": {"kind": "rule"}}
    write_lines([json.dumps({"systems": systems})], tmp_path / "facts.json")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert data(page, "list")["systems"] == {"raw": "raw query", "trained": "step 24 <i>"}
    assert '<th scope="row">step 24 &lt;i&gt;</th>' in page
    assert "| step 24 <i> |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    svg = (tmp_path / "plots" / "means-lexical.svg").read_text(encoding="utf-8")
    assert "step 24 &lt;i&gt;" in svg


def test_matrix_with_missing_cells(folder: Path) -> None:
    matrix = Matrix.read(folder / "matrix.json")
    assert matrix is not None
    assert matrix.means == [0.8, 0.4, 0.6]
    assert matrix.diagonal == {("lexical", "lexical"), ("semantic", "semantic")}
    assert Matrix.read(folder / "none.json") is None


def heat_map(folder: Path, **changed: Any) -> Plot:
    """The heat map of the folder's matrix with some keys changed; None leaves a key out."""
    path = folder / "matrix.json"
    found = json.loads(path.read_text()) | changed
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))
    (plot,) = transfer.draw(gather(folder), folder)
    return plot


def test_a_cell_says_which_runs_it_lacks(tmp_path: Path) -> None:
    add_matrix(fill(tmp_path))
    runs = [[[1, 2], [0, 2]], [[2, 2], [1, 1]]]
    plot = heat_map(tmp_path, runs=runs, row_axis="lora_rank")
    assert plot.svg.count("1 of 2 runs") == plot.svg.count(">missing<") == 1
    assert plot.title == "Lora rank (rows), evaluated on (columns)"
    with pytest.raises(ReportError, match="do not have one row of cells a name"):
        heat_map(tmp_path, runs=runs[:1])


def test_the_diagonal_is_framed(tmp_path: Path) -> None:
    add_matrix(fill(tmp_path))
    framed, plain = heat_map(tmp_path), heat_map(tmp_path, diagonal=None)
    assert framed.svg.count("<path") == plain.svg.count("<path") + 2


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path)
    cli.main(["report", str(tmp_path)])
    said = capsys.readouterr().err
    assert f"page   {tmp_path / 'report.html'} (0." in said
    assert (tmp_path / "table.md").is_file()


def test_command_without_records_ends_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["report", str(tmp_path)])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: no records.jsonl in")


def test_report_needs_no_model_package(tmp_path: Path) -> None:
    fill(tmp_path)
    code_ = (
        f"import sys; from rewriter.report import write; assert 'matplotlib' not in sys.modules; "
        f"write({str(tmp_path)!r}); "
        "assert not {'torch', 'transformers', 'trl', 'datasets'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code_],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_grid_opens_with_no_run_of_its_many(tmp_path: Path) -> None:
    """Its results lie in `GRID/report`; the last run is only the one that queries are shown of."""
    place = tmp_path / "rewards" / "report"
    place.mkdir(parents=True)
    runs = {"raw": None, "hit-seed1": "budget", "rank-seed1": "budget 2021"}
    rows = [record(name, "q1", "which budget", text, 1) for name, text in runs.items()]
    write_records(rows, place / "records.jsonl")
    source = gather(place)
    assert summary.main_system(source) == "rank-seed1"
    add_matrix(place)
    source = gather(place)
    assert summary.main_system(source) is None
    assert list(summary.verdicts(source)) == []
    assert code(source).listed["main"] == "rank-seed1"
    write(place)
    shown = (place / "report.html").read_text(encoding="utf-8")
    assert "<h1>rewards</h1>" in shown
    assert shown.index("Two factors at a time") < shown.index("Change by query")
