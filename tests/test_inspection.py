"""`rlqr data inspect`: a small collection with one of each fault, line by line."""

import pytest

from retrievers import inspection
from retrievers.collection import Collection, Document, Query
from retrievers.inspection import inspect

LONG = "the office for taxes opens at nine in the morning on every working day of the week"


def collection() -> Collection:
    documents = [
        Document("a", "Taxes", LONG),
        Document("b", "", f"{LONG} too"),
        Document("c", "", "  "),
        Document("d", "Weather", "sun\x1b[31m and rain"),
    ]
    queries = [
        Query("q1", "when is it open?", "synthetic", "a", reference="tax office hours"),
        Query("q2", "tax office", "human"),
        Query("q3", "umbrella", "human"),
        Query("q4", "nobody judges me"),
    ]
    qrels = {
        "train": {"source": {"q1": {"a": 1.0}, "q3": {"d": 0.0}}},
        "test": {"source": {"q2": {"b": 1.0, "ghost": 1.0}}, "graded": {"q2": {"b": 2.0}}},
    }
    return Collection.from_documents("office", documents, queries, qrels)


def test_report() -> None:
    assert inspect(collection(), samples=0).splitlines() == [
        "collection office",
        "  4 documents, 1 blank, 2 without a title",
        # 82 + " too" = 86; sun, 5 of the escape, " and rain" = 17; 2 blanks: (17 + 82) / 2
        "  text: 2 to 86 characters, median 49.5",
        "  languages: Latin script × 3",
        "",
        "split test: 1 queries (1 human), 0 with a reference",
        "  text: 10 to 10 characters, median 10",
        "  languages: Latin script × 1",
        "  qrels source: 1 queries, grades 1 × 2; relevant documents a query: 2 to 2, median 2",
        "  qrels graded: 1 queries, grades 2 × 1; relevant documents a query: 1 to 1, median 1",
        "",
        "split train: 2 queries (1 human, 1 synthetic), 1 with a reference",
        "  text: 8 to 16 characters, median 12",
        "  languages: Latin script × 2",
        "  qrels source: 2 queries, grades 0 × 1, 1 × 1; relevant documents a query: 0 to 1, "
        "median 0.5; 1 queries without any are excluded from metrics",
        "",
        "left out: 1 query without a judgement",
        "doubts about documents: none",
        "judgements of absent documents: 1",
        "  query q2, document ghost",
        "queries from absent documents: none",
        "documents with the text of another: none",
        # 82 characters are 17 words, so 15 runs of three; the longer text has one more: 15 / 16
        "near-duplicates (from 0.8) among the documents: 1",
        "  0.94 a, b",
        "leaks between splits: none",
        "near-duplicates (from 0.8) in different splits: 1",
        "  0.94 a, b",
    ]


def test_samples_show_what_was_judged() -> None:
    lines = inspect(collection()).splitlines()
    start = lines.index("test q2: tax office")
    assert lines[start + 1].startswith("  1 b: | the office for taxes")
    assert lines[start + 2] == "  1 ghost: not in the collection"
    start = lines.index("train q1: when is it open?")
    assert lines[start + 1] == "  reference: tax office hours"
    assert "  0 d: Weather | sun [31m and rain" in lines  # no terminal command gets through


def test_leaks_are_listed_whole() -> None:
    leaking = Collection.from_documents(
        "leaky",
        [Document("a", "", "x")],
        [Query("q1", "x"), Query("q2", "y")],
        {"train": {"source": {"q1": {"a": 1}}}, "test": {"source": {"q2": {"a": 1}}}},
    )
    report = inspect(leaking, samples=0)
    assert (
        "leaks between splits: 1\n  1 relevant documents are in both 'test' and 'train'" in report
    )
    assert report.count("split by source document") == 1


def test_long_texts_are_cut_in_scripts_without_spaces() -> None:
    documents = [Document("a", "", "예산" * 500)]
    report = inspect(
        Collection.from_documents(
            "k", documents, [Query("q", "가" * 300)], {"test": {"source": {"q": {"a": 1}}}}
        )
    )
    assert f"test q: {'가' * 96}…" in report


def test_collection_without_queries() -> None:
    report = inspect(Collection.from_documents("bare", [Document("a", "", "x")]))
    assert report.splitlines()[-8:] == [
        "left out: nothing",
        "doubts about documents: none",
        "judgements of absent documents: none",
        "queries from absent documents: none",
        "documents with the text of another: none",
        "near-duplicates (from 0.8) among the documents: none",
        "leaks between splits: none",
        "near-duplicates (from 0.8) in different splits: none",
    ]


def test_the_search_for_near_duplicates_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "PAIRS", 2)
    documents = [Document(str(n), "", f"{LONG} {n}") for n in range(4)]  # all are alike: 6 pairs
    report = inspect(Collection.from_documents("alike", documents))
    assert "among the documents, where the search for more ended: 2\n" in report
    monkeypatch.setattr(inspection, "COMPARED_CHARS", 2 * len(documents[0].text))
    assert "among 2 of the documents: 1\n" in inspect(Collection.from_documents("x", documents))
