"""Systems × backends → records: what was sent, what was found, which searches failed."""

from dataclasses import replace

import pytest

from retrievers.base import Hit, SearchError
from retrievers.queries import Query
from rewards.search.patience import Patience
from rewriter.evaluation import EvaluationError, evaluate, summarise
from rewriter.records import Record, RecordError, Rewrite
from rewriter.tables import table
from tests.known_answers import ANSWERS, QRELS, QUERIES, RAW, TRAINED, Fake, pick, records

close = pytest.approx


def test_a_record_holds_what_was_sent_and_found() -> None:
    found = records(split="validation")
    assert len(found) == 2 * 2 * 4
    record = pick(found, "trained", "lexical", "q2")
    assert record.metrics == close({"ndcg@3": 0.85972, "mrr@10": 1.0, "recall@10": 1.0}, abs=5e-6)
    assert replace(record, metrics={}) == Record(
        system="trained",
        backend="lexical",
        split="validation",
        query_id="q2",
        origin="human",
        query="long two",
        rewrite="two",
        failure=None,
        text="two",
        hits=(Hit("c", 1.0), Hit("b", 1.0), Hit("c", 1.0), Hit("a", 1.0)),
        grades=(1.0, 2.0, 1.0, 0.0),
        metrics={},
    )
    assert pick(found, "raw", "lexical", "q1").metrics["ndcg@3"] == close(0.63093, abs=5e-6)
    assert pick(found, "raw", "lexical", "q1").origin == "synthetic"


def test_a_query_without_hits_scores_zero_and_one_without_relevant_documents_nothing() -> None:
    found = records()
    empty = pick(found, "trained", "lexical", "q3")
    assert (empty.hits, empty.metrics["ndcg@3"]) == ((), 0.0)
    excluded = pick(found, "raw", "lexical", "q4")
    assert excluded.excluded
    assert [hit.id for hit in excluded.hits] == ["a", "b"]


def test_a_failed_rewrite_sends_the_raw_query() -> None:
    record = pick(records(), "trained", "lexical", "q4")
    assert (record.rewrite, record.failure, record.text) == (None, "empty", "long four")


def test_only_rewrites_are_rendered() -> None:
    found = records(render=lambda query, rewrite: f"{query} | {rewrite}")
    assert pick(found, "trained", "lexical", "q1").text == "long one | one"
    assert pick(found, "trained", "lexical", "q4").text == "long four"
    assert pick(found, "raw", "lexical", "q1").text == "long one"


def test_each_backend_is_asked_once_with_all_texts() -> None:
    backends = {"lexical": Fake(ANSWERS), "semantic": Fake({}, "semantic")}
    evaluate("trained", TRAINED, QUERIES, QRELS, backends)
    for backend in backends.values():
        assert backend.calls == [(["one", "two", "three", "long four"], 100)]


@pytest.mark.parametrize(
    ("measures", "depth", "k"), [(["mrr"], 50, 50), (["recall@100"], 10, 100), (["mrr@1"], 1, 3)]
)
def test_the_depth_reaches_every_cutoff(measures: list[str], depth: int, k: int) -> None:
    backend = Fake(ANSWERS)
    found = evaluate(
        "raw", RAW, QUERIES, QRELS, {"lexical": backend}, measures=measures, depth=depth
    )
    assert backend.calls[0][1] == k
    assert list(found[0].metrics) == ["ndcg@3", *measures]  # the headline is always there


def test_a_hit_with_the_querys_id_is_dropped_before_the_cut() -> None:
    # A query that is a document itself: "b" finds itself first, then its relative "a".
    queries, qrels = [Query("b", "text b")], {"b": {"a": 1.0}}
    for drop, hits, value in ((False, ["b"], 0.0), (True, ["a"], 1.0)):
        backend = Fake({"text b": "b a c"})
        (record,) = evaluate(
            "raw",
            {"b": Rewrite(None)},
            queries,
            qrels,
            {"lexical": backend},
            measures=["hit@1"],
            depth=1,
            drop_query_id=drop,
        )
        assert [hit.id for hit in record.hits][:1] == hits
        assert record.metrics["hit@1"] == value
        assert len(record.hits) == (2 if drop else 3)  # NDCG@3 needs three
        assert backend.calls[0][1] == (4 if drop else 3)


def test_what_does_not_fit_together_is_refused() -> None:
    backends = {"lexical": Fake(ANSWERS)}
    few = {query: made for query, made in RAW.items() if query != "q3"}
    with pytest.raises(EvaluationError, match=r"1 of 4 queries have no rewrite.*'q3'"):
        evaluate("raw", few, QUERIES, QRELS, backends)
    with pytest.raises(EvaluationError, match="'q2' is there twice"):
        evaluate("raw", RAW, [*QUERIES, QUERIES[1]], QRELS, backends)
    with pytest.raises(EvaluationError, match="0 queries, 1 backends"):
        evaluate("raw", RAW, [], QRELS, backends)
    with pytest.raises(EvaluationError, match="4 queries, 0 backends"):
        evaluate("raw", RAW, QUERIES, QRELS, {})
    with pytest.raises(RecordError, match="step 60"):
        evaluate("step 60", RAW, QUERIES, QRELS, backends)


def test_a_failing_backend_is_no_score() -> None:
    class Down(Fake):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            raise SearchError("down")

    with pytest.raises(SearchError, match="down"):
        evaluate("raw", RAW, QUERIES, QRELS, {"lexical": Down({})})


class Half(Fake):
    """Is down for one query."""

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        if "one" in queries:
            raise ConnectionError("reset by peer")
        return super()._search(queries, k)


def test_a_search_that_failed_for_good_is_no_score_and_counted() -> None:
    patience = Patience(retries=0, max_failures=2)
    found = [
        record
        for system, made in (("raw", RAW), ("trained", TRAINED))
        for record in evaluate(
            system, made, QUERIES, QRELS, {"lexical": Half(ANSWERS)}, patience=patience
        )
    ]
    lost = pick(found, "trained", "lexical", "q1")
    assert (lost.metrics, lost.hits, lost.failed) == ({}, (), True)
    assert lost.error == "ConnectionError('reset by peer')"
    summary = summarise(found, samples=100)["lexical"]["trained"]
    # q2 .85972 and q3 0 are left; q4 has nothing relevant.
    assert summary["ndcg@3"]["mean"] == close(0.85972 / 2, abs=5e-6)
    assert (summary["failed"], summary["excluded"], summary["ndcg@3"]["n"]) == (1, 1, 2)
    # Compared on the queries that both searched: the raw q1, found at rank 2, does not count.
    assert summary["vs_raw"]["diff"] == close(0.85972 / 2, abs=5e-6)
    shown = table({"lexical": {"trained": summary}}, "lexical")
    assert "Searches that failed and count nowhere: trained 1." in shown


def test_a_system_whose_every_search_failed_is_told_from_wrong_judgements() -> None:
    class Down(Fake):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            raise ConnectionError("reset by peer")

    backends = {"lexical": Down({})}
    found = evaluate("raw", RAW, QUERIES, QRELS, backends, patience=Patience(0, 0, 9))
    with pytest.raises(EvaluationError, match=r"system 'raw', backend 'lexical': 4 of 4 searches"):
        summarise(found, samples=10)
