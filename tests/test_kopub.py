"""SDS KoPub VDR in its published columns, from a local copy."""

from pathlib import Path
from typing import Any

import pytest

from retrievers.identity import CollectionError, UnknownNameError
from retrievers.loaders import load
from retrievers.pages import PageSettings, page_source
from tests.tiny_datasets import kopub, parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kopub(tmp_path / "kopub")


def opened(folder: Path, **options: Any) -> Any:
    return load("kopub", folder=str(folder), **options)


def test_ground_truth_is_a_row_of_the_corpus(folder: Path) -> None:
    collection = opened(folder, task="image")
    assert collection.qrels("test") == {"q1": {"page-3": 1.0}, "q2": {"page-0": 1.0}}
    assert collection.queries("test")[1].metadata == {"type": "cross"}
    assert collection.conventions.primary == "recall@5"


def test_tasks_are_never_swapped(folder: Path) -> None:
    image = opened(folder, task="image")
    assert all(text == "" for _, text in image.texts())
    assert len(list(page_source(image, PageSettings()).documents())) == 5
    text = opened(folder, task="text", text="ocr")
    assert text.name == "kopub-ocr"
    assert text.document("page-0").text == "인식 0"
    assert "image" not in text.documents.column_names
    assert opened(folder, task="text", text="text").document("page-0").text == "본문 0"
    for options in ({"task": "text"}, {"task": "image", "text": "ocr"}, {}):
        with pytest.raises(UnknownNameError, match="task"):
            opened(folder, **options)
    with pytest.raises(UnknownNameError, match=r"no column 'parsed'; it has: id, image, text, ocr"):
        opened(folder, task="text", text="parsed")


@pytest.mark.parametrize("task", [{"task": "image"}, {"task": "text", "text": "ocr"}])
def test_equal_images_are_noted_or_merged(folder: Path, task: dict[str, str]) -> None:
    kept = opened(folder, **task)
    assert len(kept) == 5
    assert kept.metadata("page-3") == {"file": "f2", "same_image_as": "page-1"}
    assert kept.metadata("page-1") == {"file": "f1"}
    merged = opened(folder, **task, duplicates="merge")
    assert merged.ids == ("page-0", "page-1", "page-2", "page-4")
    assert merged.qrels("test")["q1"] == {"page-1": 1.0}
    assert merged.left_out == {"page image that was there already": 1}
    assert merged.document("page-4").text == kept.document("page-4").text


def test_a_row_outside_of_the_corpus_is_an_error(folder: Path) -> None:
    path = folder / "SDS-KoPub-QA" / "test-00000-of-00001.parquet"
    for gold, said in ((5, "5 is no row of the corpus, which has 5"), (-1, "-1 is no row")):
        parquet(path, [{"query": "x", "ground_truth": [0]}, {"query": "y", "ground_truth": [gold]}])
        with pytest.raises(CollectionError, match=rf"parquet:2: ground_truth {said}"):
            opened(folder, task="image")
    parquet(path, [{"query": "x", "ground_truth": ["page-0"]}])
    with pytest.raises(CollectionError, match="wanted whole numbers"):
        opened(folder, task="image")


def test_a_copy_without_annotations(folder: Path) -> None:
    (folder / "SDS-KoPub-annotations" / "test-00000-of-00001.parquet").unlink()
    assert opened(folder, task="image").metadata("page-0") == {}


def test_a_query_id_that_comes_twice_names_both_rows(folder: Path) -> None:
    row = {"id": "x", "query": "예산?", "ground_truth": [1]}
    for path in (folder / "SDS-KoPub-QA").iterdir():
        path.unlink()
    parquet(folder / "SDS-KoPub-QA" / "test-00000-of-00001.parquet", [row, row])
    with pytest.raises(CollectionError, match=r"parquet:1 and again at .*\.parquet:2"):
        opened(folder, task="image")
