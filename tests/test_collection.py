"""Collections in memory: views, names, ids in both Unicode forms, leaks, likeness, splits."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Documents
from retrievers.collection import Collection, Document, Query
from retrievers.documents import build_table
from retrievers.identity import (
    CollectionError,
    DuplicateIdError,
    EmptyCollectionError,
    UnknownNameError,
)
from retrievers.leaks import LeakError, check_leaks, near_duplicates, near_leaks
from retrievers.loaders import LOADERS, load
from retrievers.splitting import split_by_document

NFC, NFD = "caf\u00e9", "cafe\u0301"
WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def toy(
    texts: Mapping[str, str], qrels: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None
) -> Collection:
    """Documents with these texts, and a query for every id that a split judges."""
    queries = dict.fromkeys(query for judged in (qrels or {}).values() for query in judged)
    return Collection.from_documents(
        "toy",
        [Document(identity, "", text) for identity, text in texts.items()],
        [Query(query, "?") for query in queries],
        {split: {"source": judged} for split, judged in (qrels or {}).items()},
    )


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


def test_colliding_ids_in_qrels() -> None:
    with pytest.raises(CollectionError, match="split 'test', kind 'source'"):
        toy({"a": "x"}, {"test": {"q": {NFC: 1, NFD: 0}}})


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


def test_leaks_warn_on_load_and_stop_training() -> None:
    leaky = toy({"a": "x", "b": "y"}, {"train": {"q": {"a": 1}}, "test": {"q": {"b": 0, "a": 2}}})
    assert len(leaky.warnings) == 2
    assert "1 query ids are in both 'test' and 'train', for example 'q'" in leaky.warnings[0]
    assert "1 relevant documents are in both 'test' and 'train'" in leaky.warnings[1]
    assert check_leaks(leaky, strict=False) == leaky.warnings
    with pytest.raises(LeakError, match=r"(?s)query ids.*relevant documents"):
        check_leaks(leaky)


def test_a_document_of_grade_0_does_not_leak() -> None:
    clean = toy({"a": "x", "b": "y"}, {"train": {"q": {"a": 1, "b": 0}}, "test": {"r": {"b": 1}}})
    assert clean.warnings == []
    assert check_leaks(clean) == []


def test_near_duplicates_by_hand() -> None:
    """12 words are 10 runs of three; without the last word 9 of the 10 remain."""
    texts = {
        "x": " ".join(WORDS[:11]).upper() + "!",
        "y": "nothing of the kind is said in this one",
        "w": " ".join(WORDS),
        "v": " ".join(WORDS[:6] + WORDS[7:]),  # 9 runs
        "blank": "",
        "empty": " \n",
    }
    collection = toy(texts)
    # v: the 4 runs within words 1-6, 2 over the gap, the 3 within 8-12; 7 shared of 9 + 10 - 7.
    assert near_duplicates(collection, collection.ids) == [("x", "w", 0.9)]
    assert near_duplicates(collection, ["w", "v", "w"], 0.58) == [("w", "v", 7 / 12)]
    assert near_duplicates(collection, ["w", "v"], 0.59) == []
    assert near_duplicates(collection, []) == near_duplicates(collection, ["blank", "empty"]) == []
    assert len(near_duplicates(toy(dict.fromkeys("abcd", "p q")), "abcd", most=3)) == 3
    with pytest.raises(CollectionError, match="threshold 0"):
        near_duplicates(collection, ["w"], 0)
    with pytest.raises(UnknownNameError, match="'z'"):
        near_duplicates(collection, ["z"])


def test_near_duplicates_without_spaces() -> None:
    one = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u6211\u4eec\u53bb\u516c\u56ed"  # 11 characters
    collection = toy({"a": one, "b": one + "\u5427", "c": one[::-1]})
    assert near_duplicates(collection, collection.ids) == [("a", "b", 0.9)]  # 9 runs of 10


def runs(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + 3]) for i in range(max(len(words) - 2, 1))} if words else set()


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), min_size=1, max_size=12),
    st.sampled_from([0.2, 0.5, 0.6, 0.8, 1.0]),
)
def test_near_duplicates_are_those_of_all_pairs(texts: Sequence[str], threshold: float) -> None:
    collection = toy({str(i): text for i, text in enumerate(texts)})
    sets = [runs(text) for text in texts]
    expected = []
    for b in range(len(texts)):
        for a in range(b):
            if sets[a] and sets[b]:
                score = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
                expected += [(str(a), str(b), score)] if score >= threshold else []
    found = near_duplicates(collection, collection.ids, threshold)
    assert found == sorted(expected, key=lambda pair: (int(pair[0]), int(pair[1])))


def test_near_leaks_lie_in_different_splits() -> None:
    texts = {i: " ".join(WORDS[: 11 + i % 2]) for i in range(4)} | {4: "of another kind"}
    qrels = {
        "train": {"q0": {"0": 1.0}, "q2": {"2": 1.0}},
        "test": {"q1": {"1": 1.0}, "q4": {"4": 1.0, "3": 0.0, "ghost": 1.0}},
    }
    collection = toy({str(i): text for i, text in texts.items()}, qrels)
    assert near_leaks(collection) == [("0", "1", 0.9), ("1", "2", 0.9)]


SHARES = {"train": 0.5, "validation": 0.25, "test": 0.25}


@given(st.lists(st.integers(0, 19), min_size=60, max_size=90), st.integers(0, 5))
def test_splits_never_divide_a_document_or_its_near_duplicates(
    choices: list[int], seed: int
) -> None:
    # Documents 0 and 1 are near-duplicates, and so are 2 and 3; the others are alone.
    texts = {str(i): f"{i} {i} {i}" for i in range(20)}
    texts |= {"0": " ".join(WORDS), "1": " ".join(WORDS[:11]), "2": "p q r s", "3": "P Q R S"}
    sources = {f"q{i}": str(choice) for i, choice in enumerate([*range(20), *choices])}
    splits = split_by_document(toy(texts), sources, SHARES, seed)
    assert sorted(query for queries in splits.values() for query in queries) == sorted(sources)
    homes = {sources[query]: split for split, queries in splits.items() for query in queries}
    for split, queries in splits.items():
        assert {homes[sources[query]] for query in queries} == {split}
    assert homes["0"] == homes["1"]
    assert homes["2"] == homes["3"]
    again = split_by_document(toy(texts), dict(reversed(sources.items())), SHARES, seed)
    assert {split: set(queries) for split, queries in again.items()} == {
        split: set(queries) for split, queries in splits.items()
    }


def test_shares_are_met_and_the_seed_matters() -> None:
    collection = toy({str(i): f"{i} {i} {i}" for i in range(40)})
    sources = {f"q{i}": str(i) for i in range(40)}
    splits = split_by_document(collection, sources, SHARES, seed=0)
    assert [len(splits[split]) for split in SHARES] == [20, 10, 10]
    assert splits != split_by_document(collection, sources, SHARES, seed=1)


@pytest.mark.parametrize(
    ("fractions", "said"),
    [
        ({"train": 0.7, "test": 0.2}, "add up to 1"),
        ({"train": 1.1, "test": -0.1}, "above 0"),
        ({}, "add up to 1"),
        ({"a/b": 1.0}, "a/b"),
        (SHARES, "leave validation, test empty|leave test, validation empty"),
    ],
)
def test_unfit_fractions(fractions: Mapping[str, float], said: str) -> None:
    with pytest.raises(CollectionError, match=said):
        split_by_document(toy({"a": "x"}), {"q": "a"}, fractions, seed=0)


def test_loaders_are_listed() -> None:
    assert set(LOADERS) >= {"beir", "stdlib"}
    with pytest.raises(UnknownNameError, match=r"no loader 'bier'; there are: beir, .*stdlib"):
        load("bier")
    with pytest.raises(UnknownNameError, match=r"loader 'beir'.*folder: "):
        load("beir", path="x")
