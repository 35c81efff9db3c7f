"""What the report cuts: texts and page images, so that it stays small."""

from base64 import b64decode
from pathlib import Path

from rewriter.report import write
from rewriter.report.files import Document
from rewriter.report.texts import pack
from rewriter.report.thumbnails import thumbnails
from tests.report_folder import add_pages, data, fill, unpacked


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
