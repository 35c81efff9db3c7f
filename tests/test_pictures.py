"""Pictures of pages in a result folder: of which documents, and what the documents' file says."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from retrievers.collection import Collection
from retrievers.pages import PageSettings
from rewriter.config import Config
from rewriter.evaluation.changes import by_change, changes
from rewriter.evaluation.documents import write_documents
from rewriter.evaluation.pictures import QUERIES, page_settings, write_pictures
from tests import tiny
from tests.tiny_records import record

SETTINGS = PageSettings(failed="stop")
COLOURS = ((200, 30, 30), (30, 200, 30), (30, 30, 200))


def drawn(colour: tuple[int, int, int]) -> bytes:
    """A page of 600 × 800 that is not all of one colour."""
    image = Image.new("RGB", (600, 800), "white")
    image.paste(colour, (0, 0, 600, 700))
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def collection() -> Collection:
    """Document "one" of a page, "three/.." of three, "none" without any, "bad" that is no image."""
    blank = BytesIO()
    Image.new("RGB", (60, 80), "white").save(blank, "PNG")
    cells = [
        [drawn(COLOURS[0])],
        [blank.getvalue(), drawn(COLOURS[1]), drawn(COLOURS[2])],
        [],
        [b"no image"],
    ]
    table = pa.table(
        {
            "id": ["one", "three/..", "none", "bad"],
            "title": ["One", "Three", "", ""],
            "text": ["", "all of it", "", ""],
            "images": pa.array(cells, pa.list_(pa.binary())),
        }
    )
    return Collection("pages", table)


def colour(path: Path) -> tuple[int, ...]:
    with Image.open(path) as image:
        assert image.format == "WEBP"
        assert image.size == (300, 400)
        found: Any = image.convert("RGB").getpixel((150, 100))
        return tuple(found)


def test_a_document_shows_its_first_page_that_can_be_seen(
    collection: Collection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hits = ["three/..", "three/..#page-3", "none", "bad", "stranger"]
    records = [record("raw", "q", 0.0, hits), record("trained", "q", 1.0, ["one"])]
    qrels = {"q": {"one": 1.0, "none": 0.0}}
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "old.webp").touch()
    found = write_pictures(records, qrels, collection, SETTINGS, tmp_path)
    # The first of three is blank; an id that only looks like a page of a document is a stranger.
    assert found == {"one": "pages/0-1.webp", "three/..": "pages/1-2.webp"}
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {
        Path(name).name for name in found.values()
    }
    for name, wanted in zip(found.values(), COLOURS[:2], strict=True):
        assert colour(tmp_path / name) == pytest.approx(wanted, abs=12)
    assert "1 documents have no picture: document 'bad'" in caplog.text
    write_documents(records, qrels, collection, tmp_path / "documents.jsonl", found)
    rows = {row["id"]: row for row in tiny.lines(tmp_path / "documents.jsonl")}
    assert list(rows) == ["one", "none", "three/..", "bad"]
    assert rows["one"]["image"] == "pages/0-1.webp"
    assert rows["three/.."] == {
        "id": "three/..",
        "title": "Three",
        "text": "all of it",
        "image": "pages/1-2.webp",
    }
    assert "image" not in rows["none"]


def test_queries_that_changed_most_come_first(collection: Collection, tmp_path: Path) -> None:
    """One query more than have pictures; the one that did not change is left out."""
    count = QUERIES + 1
    records = [record("raw", "still", 0.5, ["one"]), record("t", "still", 0.5, ["one"])]
    for number in range(1, count):
        records.append(record("raw", f"q{number}", 0.5, ["three/.."]))
        records.append(record("t", f"q{number}", 0.0 if number % 2 else 0.9, ["three/.."]))
    assert changes(records, "raw")["q1"] == 0.5
    assert by_change(records, "raw")[0] == "q1"
    assert by_change(records, "raw")[-1] == "still"
    found = write_pictures(records, {}, collection, SETTINGS, tmp_path)
    assert list(found) == ["three/.."]


def test_only_a_multimodal_backend_has_pages(tmp_path: Path) -> None:
    given = {
        "multimodal": {"pages": {"dpi": 72}},
        "hybrid": {"backends": ["lexical", "multimodal"]},
    }
    config = Config.model_validate(
        {"model": {"name": "none"}, "reward": {"backends": "lexical"}, "retrievers": given}
    )
    assert page_settings(config, ["lexical"]) is None
    for backends in (["multimodal"], ["lexical", "hybrid"]):
        found = page_settings(config, backends)
        assert found is not None
        assert found.dpi == 72
    records = [record("raw", "q", 0.0, ["one"])]
    write_documents(
        records, {}, Collection("c", pa.table({"id": ["one"], "text": ["t"]})), tmp_path / "d.jsonl"
    )
    assert json.loads((tmp_path / "d.jsonl").read_text()) == {"id": "one", "title": "", "text": "t"}
