"""MS MARCO v2.1 in the columns of the hub, from a local copy."""

import json
from pathlib import Path
from typing import Any

import pytest

from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError
from retrievers.loaders import load
from tests.tiny_datasets import MSMARCO, msmarco, msmarco_row, parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return msmarco(tmp_path / "ms_marco")


def whole(folder: Path, **options: Any) -> Any:
    return load("msmarco", folder=str(folder), splits={"validation": 1.0}, **options)


def test_documents_are_the_distinct_passages(folder: Path) -> None:
    collection = whole(folder)
    texts = [text for _, text in collection.texts()]
    assert texts == ["alpha", "beta", "gamma", "delta", "epsilon"]
    assert collection.left_out == {"blank passage": 1}
    ids = dict(zip(texts, collection.ids, strict=True))
    assert collection.qrels("validation") == {
        "10": {ids["beta"]: 1.0},
        "11": {ids["beta"]: 1.0},
        "12": {},  # nothing was selected for it
        "13": {ids["epsilon"]: 1.0},
    }
    query = collection.queries("validation")[0]
    assert (query.text, query.metadata["query_type"]) == ("question 10", "DESCRIPTION")
    assert collection.metadata(ids["beta"]) == {"url": "https://example.org/10/1"}


def test_a_seeded_share_of_the_test_split_without_labels(folder: Path) -> None:
    def drawn(seed: int) -> list[str]:
        collection = load("msmarco", folder=str(folder), splits={"test": 0.4}, seed=seed)
        assert all(grades == {} for grades in collection.qrels("test").values())
        return [query.id for query in collection.queries("test")]

    assert drawn(0) == drawn(0)
    assert all(len(drawn(seed)) == 1 for seed in range(3))  # 0.4 of 3 is 1.2
    assert len({tuple(drawn(seed)) for seed in range(20)}) == 3


def test_one_percent_of_the_test_split_are_1011_queries() -> None:
    assert round(101_092 * 0.01) == 1011


def test_passages_of_the_drawn_queries_or_all(folder: Path) -> None:
    few = load("msmarco", folder=str(folder), splits={"test": 0.4})
    every = load("msmarco", folder=str(folder), splits={"test": 0.4}, documents="all")
    assert len(few) == 2
    assert sorted(text for _, text in every.texts()) == ["alpha", "p20", "p21", "p22"]
    assert set(few.ids) < set(every.ids)  # ids depend on the text alone


def test_two_splits_share_documents(folder: Path) -> None:
    both = load("msmarco", folder=str(folder), splits={"validation": 1.0, "test": 1.0})
    assert both.splits == ["test", "validation"]
    assert len(both) == 8  # alpha is in both


def test_jsonl_and_the_form_of_the_original_files(tmp_path: Path) -> None:
    passages = [
        {"is_selected": 1, "passage_text": "alpha", "url": "u"},
        {"passage_text": "beta", "url": "v"},
    ]
    row = {**msmarco_row(1, [], []), "passages": passages}
    path = tmp_path / "v2.1" / "validation.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(row) + "\n")
    collection = whole(tmp_path)
    assert collection.qrels("validation") == {"1": {collection.ids[0]: 1.0}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"passages": {"is_selected": [1], "passage_text": ["a", "b"], "url": ["u", "v"]}},
            "2 pas",
        ),
        ({"passages": {"is_selected": [1], "passage_text": [None], "url": ["u"]}}, "without text"),
        ({"passages": None}, "'passages' is None"),
        ({"query": None}, "'query' is None"),
        ({"query_id": None}, "id None"),
        ({"query_id": 1}, "and again at .*parquet:2"),
    ],
)
def test_a_row_that_is_not_as_published(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "v2.1" / "validation-00000-of-00001.parquet"
    parquet(path, [msmarco_row(1, ["a"], [1]), {**msmarco_row(2, ["b"], [0]), **change}], MSMARCO)
    with pytest.raises(CollectionError, match=rf"validation-.*\.parquet:[12].*{said}"):
        whole(tmp_path)


def test_a_label_that_is_none_is_not_taken_for_irrelevant(tmp_path: Path) -> None:
    row = {"query_id": 1, "query": "x", "passages": [{"passage_text": "a", "is_selected": "1"}]}
    (tmp_path / "v2.1").mkdir()
    (tmp_path / "v2.1" / "validation.jsonl").write_text(json.dumps(row))
    with pytest.raises(CollectionError, match=r"validation.jsonl:1: 'is_selected' is '1', wanted"):
        whole(tmp_path)


def test_missing_files_shards_and_empty_draws(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EmptyCollectionError, match=r"0\.01 of 3 rows is none; raise splits\.test"):
        load("msmarco", folder=str(folder))
    (folder / "v2.1" / "validation-00000-of-00002.parquet").unlink()
    with pytest.raises(MissingFileError, match=r"1 of 2 shards are missing, for example .* 00000"):
        whole(folder)
    with pytest.raises(MissingFileError, match=r"no file of split 'train' of configuration 'v2.1'"):
        load("msmarco", folder=str(folder), splits={"train": 0.5})
    with pytest.raises(MissingFileError, match=r"none is no folder; .*hub:OWNER/NAME"):
        load("msmarco", folder=str(tmp_path / "none"))
