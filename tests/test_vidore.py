"""ViDoRe v1, v2 and v3 in their published columns, from local copies."""

from pathlib import Path

import pytest

from retrievers.identity import CollectionError, MissingFileError, UnknownNameError
from retrievers.loaders import load
from retrievers.pages import PageSettings, page_source
from tests.tiny_datasets import parquet, picture, vidore_v1, vidore_v2, vidore_v3

NAME = "test-00000-of-00001.parquet"


def test_v1_equal_queries_and_pages_are_one(tmp_path: Path) -> None:
    collection = load("vidore", folders=[str(vidore_v1(tmp_path / "docvqa"))])
    assert collection.ids == ("docvqa/a.png", "docvqa/b.png", "docvqa/c.png")
    assert [(q.id, q.text) for q in collection.queries("test")] == [
        ("docvqa/q1", "how much?"),
        ("docvqa/q2", "who?"),
    ]
    assert collection.qrels("test") == {
        "docvqa/q1": {"docvqa/a.png": 1.0, "docvqa/b.png": 1.0},
        "docvqa/q2": {"docvqa/a.png": 1.0},
    }
    assert collection.conventions.primary == "ndcg@5"
    assert collection.queries("test")[0].metadata["subset"] == "docvqa"


def test_v1_two_images_with_one_name_stay_apart(tmp_path: Path) -> None:
    rows = [
        {"query": "one", "image": picture(1), "image_filename": "a.png"},
        {"query": "two", "image": picture(2), "image_filename": "a.png"},
    ]
    parquet(tmp_path / "x" / "data" / NAME, rows)
    collection = load("vidore", folders=[str(tmp_path / "x")])
    first, second = collection.ids
    assert first == "x/a.png"
    assert second.startswith("x/a.png~")
    assert collection.qrels("test") == {"x/q1": {first: 1.0}, "x/q2": {second: 1.0}}


def test_v2_hyphens_and_one_language(tmp_path: Path) -> None:
    folder = str(vidore_v2(tmp_path / "esg"))
    collection = load("vidore", folders=[folder], language="English")
    assert collection.ids == ("esg/0", "esg/1")
    assert collection.qrels("test") == {"esg/0": {"esg/1": 1.0}}
    assert collection.left_out == {"query in another language": 1}
    assert collection.metadata("esg/1") == {"doc-id": "report-1"}
    with pytest.raises(UnknownNameError, match=r"'german'; there are: {'english': 1, 'french': 1}"):
        load("vidore", folders=[folder], language="german")


def test_v3_grades_texts_and_a_subset_a_language(tmp_path: Path) -> None:
    collection = load("vidore", folders=[str(vidore_v3(tmp_path / "hr"))])
    assert collection.document("hr/1").text == "# Page 1"
    assert collection.metadata("hr/1") == {"doc_id": "handbook", "page_number_in_doc": 1}
    assert collection.qrels("test") == {"hr/0": {"hr/0": 2.0, "hr/1": 1.0}, "hr/1": {"hr/0": 2.0}}
    subsets = [query.metadata["subset"] for query in collection.queries("test")]
    assert subsets == ["hr/english", "hr/french"]
    assert (collection.conventions.primary, collection.conventions.subset) == ("ndcg@10", "subset")
    bare = load("vidore", folders=[str(tmp_path / "hr")], text="")
    assert bare.document("hr/1").text == ""
    with pytest.raises(UnknownNameError, match="no column 'ocr'"):
        load("vidore", folders=[str(tmp_path / "hr")], text="ocr")


def test_ids_of_several_subsets_never_collide(tmp_path: Path) -> None:
    folders = [str(vidore_v2(tmp_path / "esg")), str(vidore_v3(tmp_path / "hr"))]
    both = load("vidore", folders=folders)
    assert both.ids == ("esg/0", "esg/1", "hr/0", "hr/1")
    assert len(both.queries("test")) == 4
    alone = load("vidore", folders=folders[:1])
    assert set(alone.ids) < set(both.ids)
    with pytest.raises(CollectionError, match="share a name"):
        load("vidore", folders=[folders[0], str(vidore_v2(tmp_path / "other" / "esg"))])


def test_pages_are_drawn_from_the_embedded_images(tmp_path: Path) -> None:
    collection = load("vidore", folders=[str(vidore_v2(tmp_path / "esg"))])
    (first,), (second,) = (list(p) for p in page_source(collection, PageSettings()).documents())
    assert first.image is not None
    assert second.image is not None
    assert second.image.getpixel((4, 4)) == (1, 1, 1)


def test_faults_name_their_row(tmp_path: Path) -> None:
    folder = vidore_v2(tmp_path / "esg")
    qrels = folder / "qrels" / NAME

    def fault(*rows: dict[str, object]) -> str:
        parquet(qrels, rows)
        with pytest.raises(CollectionError) as caught:
            load("vidore", folders=[str(folder)])
        return str(caught.value)

    good = {"query-id": 0, "corpus-id": 1, "score": 1}
    assert f"{qrels}:2: query 'esg/9' is not in the queries" in fault(good, {**good, "query-id": 9})
    assert f"{qrels}:2: query 'esg/0' and page 'esg/1'" in fault(good, {**good, "score": 2})
    assert f"{qrels}:1: no column 'corpus_id'" in fault({"query-id": 0, "page": 1, "score": 1})
    both = {"query-id": 0, "query_id": 0, "corpus-id": 1, "score": 1}
    assert "are one and the same" in fault(both)
    assert f"{qrels}:1: score None" in fault({**good, "score": None})
    parquet(qrels, [good, good, {**good, "corpus-id": 77}])
    collection = load("vidore", folders=[str(folder)])
    assert collection.dangling == [("esg/0", "esg/77")]


def test_layouts_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="configuration 'corpus'"):
        load("vidore", folders=[str(tmp_path)])
    parquet(tmp_path / "data" / NAME, [{"query": "x", "picture": "y"}])
    with pytest.raises(CollectionError, match="ViDoRe v1 has columns image, image_filename too"):
        load("vidore", folders=[str(tmp_path)])
    (tmp_path / "page.png").write_bytes(b"")
    no_bytes = [{"query": "x", "image": {"bytes": None, "path": "/x/a.png"}, "image_filename": "a"}]
    parquet(tmp_path / "data" / NAME, no_bytes)
    with pytest.raises(CollectionError, match=rf"{NAME}:1: the image is a path without bytes"):
        load("vidore", folders=[str(tmp_path)])
