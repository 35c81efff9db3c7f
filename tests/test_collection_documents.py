"""Collections in memory: views of documents, ids in both Unicode forms, fingerprints."""

from typing import Any

import pyarrow as pa
import pytest

from retrievers.base import Documents
from retrievers.collection import Collection, Document, Query
from retrievers.documents import build_table
from retrievers.identity import CollectionError, DuplicateIdError, EmptyCollectionError
from tests.tiny_collections import NFC, NFD, toy


def fingerprint(*rows: tuple[str, str, str]) -> str:
    return Collection.from_documents("toy", [Document(*row) for row in rows]).fingerprint


def test_documents_are_views_in_corpus_order() -> None:
    documents = [Document("b", "Tax", "Due in May"), Document("a", "", "Sea")]
    collection = Collection.from_documents("toy", documents)
    assert list(collection.ids) == ["b", "a"]
    assert len(collection) == 2
    assert list(collection.texts()) == [("Tax", "Due in May"), ("", "Sea")]
    assert [collection.document(identity) for identity in collection.ids] == documents
    assert (collection.position("b"), collection.position("a")) == (0, 1)
    assert "a" in collection
    assert "c" not in collection
    assert 1 not in collection


def test_a_collection_is_what_a_backend_reads() -> None:
    documents: Documents = toy({"a": "x"})  # checked by mypy
    assert list(documents.texts()) == [("", "x")]


@pytest.mark.parametrize("title", [[None, "T"], None])
def test_missing_titles_and_texts_are_empty(title: list[str | None] | None) -> None:
    columns: dict[str, Any] = {"id": ["a", "b"], "text": ["x", None]}
    collection = Collection("toy", pa.table(columns | ({"title": title} if title else {})))
    assert collection.document("a") == Document("a", "", "x")
    assert "None" not in str(list(collection.texts()))
    assert collection.document("b") == Document("b", title[1] or "" if title else "", "")


def test_texts_across_chunks() -> None:
    parts = [build_table([{"id": str(i), "title": None, "text": f"t{i}"}]) for i in range(3)]
    collection = Collection("toy", pa.concat_tables(parts))
    assert list(collection.texts()) == [("", "t0"), ("", "t1"), ("", "t2")]
    assert collection.document("2").text == "t2"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": ["a"]}, "'text'"),
        ({"_id": ["a"], "text": ["x"]}, "'id'"),
        ({"id": [1], "text": ["x"]}, "int64"),
        ({"id": ["a"], "text": [b"x"]}, "binary"),
        ({"id": [None, "a"], "text": ["x", "y"]}, "row 0: document id None"),
        ({"id": ["a", ""], "text": ["x", "y"]}, "row 1: document id ''"),
    ],
)
def test_unfit_tables(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(CollectionError, match=said):
        Collection("toy", pa.table(columns))


def test_an_empty_collection_has_its_own_error() -> None:
    with pytest.raises(EmptyCollectionError, match="'toy'"):
        toy({})


def test_ids_are_equal_in_both_unicode_forms() -> None:
    collection = Collection.from_documents(
        "toy",
        [Document(NFD, "", "x")],
        [Query(NFD, "?", origin="synthetic", source=NFD)],
        {"test": {"source": {NFC: {NFD: 1}}}},
    )
    assert list(collection.ids) == [NFC]
    assert collection.documents["id"].to_pylist() == [NFC]
    assert collection.document(NFD) == collection.document(NFC) == Document(NFC, "", "x")
    assert NFD in collection
    assert collection.qrels("test") == {NFC: {NFC: 1.0}}
    assert [(q.id, q.source) for q in collection.queries("test")] == [(NFC, NFC)]
    assert collection.dangling == []
    assert collection.warnings == []


@pytest.mark.parametrize("second", [NFD, NFC])
def test_colliding_ids_name_both_rows(second: str) -> None:
    rows = [Document(i, "", "x") for i in (NFC, "b", second)]
    with pytest.raises(DuplicateIdError, match="row 0 and again at row 2"):
        Collection.from_documents("toy", rows)
    queries = [Query(row.id, "?") for row in rows]
    with pytest.raises(DuplicateIdError, match=r"query id .* row 0 and again at row 2"):
        Collection.from_documents("toy", rows[:1], queries)


def test_fingerprint_depends_on_every_field_and_their_order() -> None:
    base = ("a", "t", "x"), ("b", "u", "y")
    variants = [
        base,
        (("a", "t", "y"), ("b", "u", "x")),  # texts swapped
        (("b", "u", "y"), ("a", "t", "x")),  # order swapped
        (("a", "tx", ""), ("b", "u", "y")),  # the same letters, cut elsewhere
        (("a", "x", "t"), ("b", "u", "y")),
        (("a", "t", "x"), ("c", "u", "y")),
        (("a", "t", "x"),),
    ]
    assert len({fingerprint(*rows) for rows in variants}) == len(variants)
    assert fingerprint(*base) == fingerprint(*base)


def test_a_missing_title_and_an_empty_one_have_one_fingerprint() -> None:
    table = pa.table({"id": ["a"], "text": ["x"]})
    assert Collection("toy", table).fingerprint == fingerprint(("a", "", "x"))


def test_fingerprint_does_not_depend_on_chunks() -> None:
    parts = [build_table([{"id": str(i), "title": "t", "text": "x"}]) for i in range(3)]
    whole = pa.concat_tables(parts)
    assert Collection("a", whole).fingerprint == Collection("b", whole.combine_chunks()).fingerprint
