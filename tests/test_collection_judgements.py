"""Collections in memory: splits, judgements and their kinds, and what of them is refused."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from retrievers.collection import Collection, Document, Query
from retrievers.identity import CollectionError, UnknownNameError
from tests.tiny_collections import NFC, NFD, toy


def test_splits_keep_the_order_of_their_judgements() -> None:
    collection = toy({"a": "x"}, {"train": {"q2": {"a": 0}}, "test": {"q3": {"a": 0}, "q1": {}}})
    assert collection.splits == ["test", "train"]
    assert [query.id for query in collection.queries("test")] == ["q3", "q1"]
    assert repr(collection) == "Collection('toy', 1 documents, queries {test: 2, train: 1})"


def test_unknown_names_list_what_there_is() -> None:
    qrels = {"test": {"source": {"q": {"a": 1}}, "graded": {"q": {"a": 2}}}}
    collection = Collection.from_documents("toy", [Document("a", "", "")], [Query("q", "?")], qrels)
    assert collection.kinds("test") == ["source", "graded"]
    assert collection.qrels("test", "graded") == {"q": {"a": 2.0}}
    with pytest.raises(UnknownNameError, match="no split 'dev'; there are: test"):
        collection.queries("dev")
    with pytest.raises(UnknownNameError, match="kind 'gradde'; there are: source, graded"):
        collection.qrels("test", "gradde")
    with pytest.raises(UnknownNameError, match=r"no document 'z'.* 'a'"):
        collection.document("z")


def test_qrels_are_copies() -> None:
    collection = toy({"a": "x"}, {"test": {"q": {"a": 1}}})
    collection.qrels("test")["q"]["a"] = 9
    assert collection.qrels("test") == {"q": {"a": 1.0}}


def test_colliding_ids_in_qrels() -> None:
    with pytest.raises(CollectionError, match="split 'test', kind 'source'"):
        toy({"a": "x"}, {"test": {"q": {NFC: 1, NFD: 0}}})


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ({"test": {"graded": {"q": {"a": 1}}}}, "none of the kind 'source'"),
        ({"te/st": {"source": {"q": {"a": 1}}}}, "te/st"),
        ({"test": {"source": {"q": {"a": 1}}, "../x": {}}}, "../x"),
        ({"test": {"source": {"ghost": {"a": 1}}}}, "1 judged queries .*'ghost'"),
        ({"test": {"source": {"q": {"a": 1}}, "graded": {"r": {"a": 1}}}}, "the split.*'r'"),
        ({"test": {"source": {"q": {"a": float("nan")}}}}, "nan"),
    ],
)
def test_unfit_qrels(qrels: Mapping[str, Any], said: str) -> None:
    documents, queries = [Document("a", "", "")], [Query("q", "?"), Query("r", "?")]
    with pytest.raises(CollectionError, match=said):
        Collection.from_documents("toy", documents, queries, qrels)


def test_an_unknown_origin_lists_the_known_ones() -> None:
    with pytest.raises(CollectionError, match="'robot' is none of human, synthetic"):
        Query("q", "?", origin="robot")
    assert len({Query("q", "?"), Query("q", "?", metadata={"a": 1})}) == 2  # hashable


def test_dangling_and_unjudged_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "retrievers.collection"):
        collection = Collection.from_documents(
            "toy",
            [Document("a", "", "")],
            [Query("q", "?", "synthetic", source="gone"), Query("r", "?"), Query("s", "?")],
            {"test": {"source": {"q": {"a": 1, "ghost": 1}}, "graded": {"q": {"ghost": 2}}}},
            left_out={"page without text": 2},
        )
    assert collection.dangling == [("q", "ghost")]
    assert collection.qrels("test")["q"] == {"a": 1.0, "ghost": 1.0}
    assert collection.left_out == {"page without text": 2, "query without a judgement": 2}
    assert len(collection.warnings) == 2
    assert "'ghost'" in collection.warnings[0]
    assert "'gone'" in collection.warnings[1]
    assert [record.args[1] for record in caplog.records if isinstance(record.args, tuple)] == (
        collection.warnings
    )
