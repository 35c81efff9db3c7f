"""Systems × backends → records → result, table and TREC files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from retrievers.base import Hit, Retriever, SearchError
from retrievers.collection import Collection, Document
from retrievers.queries import Query
from rewards.comparison import ComparisonError
from rewards.search.patience import Patience
from rewriter.evaluation import (
    EvaluationError,
    evaluate,
    evaluate_samples,
    summarise,
    write_result,
)
from rewriter.evaluation.diagnostics import diagnose
from rewriter.evaluation.kinds import add_kinds
from rewriter.records import Record, RecordError, Rewrite
from rewriter.systems import CollectionTerms
from rewriter.tables import WIDTH, markdown, table
from rewriter.trec import TrecError, write_trec

close = pytest.approx


class Fake(Retriever):
    """Knows the answers by heart: search text → document ids, all of score 1."""

    fingerprint = "fake"

    def __init__(self, answers: Mapping[str, str], backend: str = "lexical") -> None:
        super().__init__()
        self.backend = backend
        self.answers = answers
        self.calls: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.calls.append((list(queries), k))
        return super().search(queries, k)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [[Hit(doc, 1.0) for doc in self.answers.get(q, "").split()] for q in queries]


QUERIES = [
    Query("q1", "long one", origin="synthetic"),
    Query("q2", "long two"),
    Query("q3", "long three"),
    Query("q4", "long four"),
]
QRELS = {
    "q1": {"a": 1.0},
    "q2": {"b": 2.0, "c": 1.0, "a": 0.0, "d": -1.0},
    "q3": {"c": 1.0},
    "q4": {"a": 0.0},  # nothing relevant
    "other": {"z": 1.0},  # not asked for
}
ANSWERS = {
    "long one": "x a",  # rank 2: NDCG@3 .63093
    "long two": "x y d b",  # rank 4: 0
    "long four": "a b",
    "one": "a x",  # rank 1: 1
    "two": "c b c a",  # DCG 1 + 2 × .63093, ideal 2 + .63093: .85972
}
RAW = {query.id: Rewrite(None) for query in QUERIES}
TRAINED = {
    "q1": Rewrite("one"),
    "q2": Rewrite("two"),
    "q3": Rewrite("three"),  # finds nothing
    "q4": Rewrite(None, "empty"),
}


MEASURES = ("ndcg@3", "mrr@10", "recall@10")


def records(**options: object) -> list[Record]:
    options = {"measures": MEASURES, "depth": 10} | options
    backends = {"lexical": Fake(ANSWERS), "semantic": Fake({"three": "c"}, "semantic")}
    return [
        record
        for system, rewrites in (("raw", RAW), ("trained", TRAINED))
        for record in evaluate(system, rewrites, QUERIES, QRELS, backends, **options)  # type: ignore[arg-type]
    ]


def pick(found: Sequence[Record], system: str, backend: str, query: str) -> Record:
    (record,) = (r for r in found if (r.system, r.backend, r.query_id) == (system, backend, query))
    return record


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


def test_further_judgements_are_means_over_samples_too() -> None:
    documents = [Document(name, "", name) for name in "abcxyd"]
    judged = {query.id: QRELS[query.id] for query in QUERIES}
    qrels = {"test": {"source": judged, "graded": {"q1": {"a": 1.0}, "q4": {"b": 0.0}}}}
    collection = Collection.from_documents("c", documents, QUERIES, qrels)
    made = [TRAINED, TRAINED | {"q1": Rewrite("two")}]
    found = evaluate_samples(
        "trained", made, QUERIES, QRELS, {"lexical": Fake(ANSWERS)}, measures=MEASURES
    )
    result = summarise(found, samples=100)
    add_kinds(result, collection, "test", found, 100)
    # q1 alone has something relevant there: first in one sample, third in the other.
    graded = result["lexical"]["trained"]["graded_ndcg@3"]
    assert (graded["mean"], graded["n"]) == (close((1 + 0.5) / 2), 1)


def test_a_source_without_words_shares_none_with_nobody() -> None:
    """The image of a page: what it says is not known, which is no overlap of 0."""
    made = {"q1": Rewrite("one")}
    query = Query("q1", "long one", origin="synthetic", source="page")
    pages = [Document("page", "", ""), Document("a", "", "one")]
    for source, known in (("page", False), ("a", True)):
        queries = [replace(query, source=source)]
        qrels = {"q1": {"a": 1.0}}
        collection = Collection.from_documents("c", pages, queries, {"test": {"source": qrels}})
        found = evaluate("t", made, queries, qrels, {"lexical": Fake(ANSWERS)})
        shape = diagnose(found, CollectionTerms(collection), collection)["rewrites"]["t"]
        assert ("source_overlap" in shape, "query_source_overlap" in shape) == (known, known)


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


def test_samples_are_averaged_and_kept() -> None:
    made = [TRAINED, TRAINED | {"q1": Rewrite("two"), "q3": Rewrite(None, "empty")}]
    found = evaluate_samples(
        "trained", made, QUERIES, QRELS, {"lexical": Fake(ANSWERS)}, measures=MEASURES
    )
    assert len(found) == 4
    record = pick(found, "trained", "lexical", "q1")
    assert [sample.rewrite for sample in record.samples] == ["one", "two"]
    # The second sample finds "c b a": the relevant "a" third, NDCG .5.
    assert record.metrics["ndcg@3"] == close((1 + 0.5) / 2)
    assert record.rewrite == "one"
    summary = summarise(found, samples=100)["lexical"]["trained"]
    assert summary["fallbacks"] == 3  # q4 twice, q3 once
    # Means of the samples: (1 + .85972 + 0) / 3 and (.5 + .85972 + 0) / 3; both lie .5 / 6 from
    # their mean, and of two values the deviation is √2 times that.
    assert summary["spread"]["ndcg@3"] == close(2**0.5 * 0.5 / 6)
    assert evaluate_samples("t", made[:1], QUERIES, QRELS, {"l": Fake(ANSWERS)})[0].samples == ()


def test_samples_are_exported_apart(tmp_path: Path) -> None:
    made = [TRAINED, TRAINED | {"q1": Rewrite("two")}]
    found = evaluate_samples(
        "trained", made, QUERIES, QRELS, {"lexical": Fake(ANSWERS)}, measures=MEASURES
    )
    paths = write_trec(found, QRELS, tmp_path)
    names = ["lexical.trained.trec", "lexical.trained.sample2.trec", "qrels.trec"]
    assert [path.name for path in paths] == names
    means = [outside(tmp_path, name.removesuffix(".trec"))["ndcg@3"] for name in names[:2]]
    assert sum(means) / 2 == close(
        summarise(found, samples=10)["lexical"]["trained"]["ndcg@3"]["mean"]
    )


def test_parts_of_the_queries() -> None:
    groups = {
        "q1": {"languages": "ko→en", "type": "fact"},
        "q2": {"languages": "ko→en"},
        "q3": {"languages": "en→en", "type": "how"},
        "q4": {"languages": "en→en", "type": "how"},
    }
    parts = summarise(records(groups=groups), samples=100)["lexical"]["trained"]["by"]
    assert set(parts) == {"origin", "languages", "type"}
    korean = parts["languages"]["groups"]["ko→en"]
    assert korean["ndcg@3"]["mean"] == close((1 + 0.85972) / 2, abs=5e-6)
    assert (korean["queries"], korean["ndcg@3"]["n"], korean["fallbacks"]) == (2, 2, 0)
    other = parts["languages"]["groups"]["en→en"]
    assert (other["queries"], other["ndcg@3"]["n"]) == (2, 1)
    assert (other["excluded"], other["fallbacks"]) == (1, 1)
    # Macro: the mean of the two parts; micro: over three queries.
    assert parts["languages"]["macro"]["ndcg@3"] == close((1 + 0.85972) / 2 / 2, abs=5e-6)
    assert parts["languages"]["micro"]["ndcg@3"] == close((1 + 0.85972) / 3, abs=5e-6)
    assert parts["type"]["micro"]["ndcg@3"] == close(1 / 2)  # q2 has no type
    assert list(parts["origin"]["groups"]) == ["human", "synthetic"]


def test_a_column_with_a_value_for_each_query_is_no_part() -> None:
    queries = [Query(f"q{n}", "long one") for n in range(31)]
    made = {query.id: Rewrite(None) for query in queries}
    qrels = {query.id: {"a": 1.0} for query in queries}
    groups = {query.id: {"url": query.id, "half": str(n % 2)} for n, query in enumerate(queries)}
    found = evaluate("raw", made, queries, qrels, {"lexical": Fake(ANSWERS)}, groups=groups)
    assert set(summarise(found, samples=10)["lexical"]["raw"]["by"]) == {"origin", "half"}
    # But where the collection's own mean is over that column, it has as many parts as there are.
    parts = summarise(found, samples=10, subset="url")["lexical"]["raw"]["by"]["url"]
    assert len(parts["groups"]) == 31
    assert parts["macro"]["ndcg@3"] == close(0.63093, abs=5e-6)


def test_several_baselines_and_the_collections_own_measure() -> None:
    found = records()
    third = [replace(r, system="third", metrics=dict.fromkeys(r.metrics, 0.0)) for r in found[:4]]
    third[3] = replace(third[3], metrics={})
    result = summarise([*found, *third], ["raw", "trained"], samples=100, primary="recall@10")
    systems = result["lexical"]
    assert systems["third"]["vs_trained"]["loss"] == 2
    assert systems["raw"]["vs_trained"]["loss"] == 2
    # Raw finds q1 and q2's "b", which is one of two: recall 1 and .5; trained both: 1 and 1.
    own = systems["trained"]["primary_vs_raw"]
    assert own["measure"] == "recall@10"
    assert own["diff"] == close((0 + 0.5 + 0) / 3)
    assert systems["third"]["p_holm_vs_raw"] >= systems["third"]["p_vs_raw"]
    assert systems["third"]["regressions"][0] == {
        "query_id": "q1",
        "diff": close(-0.63093, abs=5e-6),
        "value": 0.0,
        "baseline": close(0.63093, abs=5e-6),
    }
    assert systems["trained"]["regressions"] == []


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


def test_the_summary_has_the_shape_of_a_result() -> None:
    result = summarise(records(), samples=500)
    assert list(result) == ["lexical", "semantic"]
    raw, trained = result["lexical"]["raw"], result["lexical"]["trained"]
    assert list(raw) == [*MEASURES, "fallbacks", "excluded", "failed", "by"]
    compared = {"vs_raw", "p_vs_raw", "p_holm_vs_raw", "queries_needed", "regressions"}
    assert set(trained) == {*raw, *compared}
    assert set(raw["ndcg@3"]) == {"mean", "low", "high", "n"}
    assert set(trained["vs_raw"]) == {"diff", "low", "high", "win", "tie", "loss"}
    assert (raw["fallbacks"], raw["excluded"]) == (0, 1)
    assert (trained["fallbacks"], trained["excluded"]) == (1, 1)


def test_the_summary_is_right() -> None:
    result = summarise(records(), samples=500)
    raw, trained = result["lexical"]["raw"], result["lexical"]["trained"]
    assert raw["ndcg@3"]["n"] == 3
    assert raw["ndcg@3"]["mean"] == close((0.63093 + 0 + 0) / 3, abs=5e-6)
    assert raw["mrr@10"]["mean"] == close((1 / 2 + 1 / 4 + 0) / 3)
    assert trained["ndcg@3"]["mean"] == close((1 + 0.85972 + 0) / 3, abs=5e-6)
    versus = trained["vs_raw"]
    assert versus["diff"] == close((0.36907 + 0.85972) / 3, abs=1e-5)
    assert (versus["win"], versus["tie"], versus["loss"]) == (2, 1, 0)
    assert versus["low"] <= versus["diff"] <= versus["high"]
    assert trained["p_vs_raw"] == 2 / 4  # two queries moved, both up
    # Apart for each backend: there, only q3 is found, and only by the rewrite.
    assert result["semantic"]["raw"]["ndcg@3"]["mean"] == 0
    assert result["semantic"]["trained"]["ndcg@3"]["mean"] == close(1 / 3)


def test_another_baseline_or_none() -> None:
    found = records()
    trained = summarise(found, "trained", samples=100)["lexical"]
    assert trained["raw"]["vs_trained"]["loss"] == 2
    assert "vs_trained" not in trained["trained"]
    alone = summarise([r for r in found if r.system == "trained"], samples=100)["lexical"]
    assert not [key for key in alone["trained"] if "vs" in key]


def test_records_that_cannot_be_summarised() -> None:
    found = records()
    with pytest.raises(RecordError, match="two records"):
        summarise([*found, replace(found[0], split="train")])
    with pytest.raises(ComparisonError, match="'q1'"):
        summarise([r for r in found if (r.system, r.query_id) != ("raw", "q1")])
    excluded = pick(found, "raw", "lexical", "q4")
    with pytest.raises(EvaluationError, match="none of 2 queries"):
        summarise([excluded, replace(excluded, query_id="q5")])
    with pytest.raises(EvaluationError, match="'q1' has mrr@10, wanted ndcg@3 and"):
        summarise([replace(found[0], metrics={"mrr@10": 1.0})])
    with pytest.raises(EvaluationError, match="'q2' has ndcg@3, wanted ndcg@3 and"):
        summarise([found[0], replace(found[1], metrics={"ndcg@3": 1.0})])


def test_the_result_is_plain_json(tmp_path: Path) -> None:
    result = summarise(records(), samples=100)
    write_result(result, tmp_path / "run" / "result.json")
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == result


RESULT = {
    "lexical": {
        "raw": {
            "ndcg@3": {"mean": 0.463, "low": 0.395, "high": 0.532, "n": 120},
            "mrr@10": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 120},
            "fallbacks": 0,
            "excluded": 2,
        },
        "step-60": {
            "ndcg@3": {"mean": 1.0, "low": 0.9, "high": 1.0, "n": 120},
            "mrr@10": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 120},
            "vs_raw": {"diff": 0.21, "low": -0.0001, "high": 1.0, "win": 45, "tie": 60, "loss": 15},
            "p_vs_raw": 0.01,
            "fallbacks": 3,
            "excluded": 2,
        },
    }
}
LABELS = {"step-60": "trained rewriter (step 60, best)"}


def words(line: str) -> str:
    return " ".join(line.split())


def test_the_table() -> None:
    lines = table(RESULT, "lexical", labels=LABELS).split("\n")
    assert lines[0] == "lexical, 120 held-out queries"
    assert words(lines[1]) == "NDCG@3 [95% CI] MRR@10 Recall@10 vs raw [95% CI] win/tie/loss"
    assert words(lines[2]) == "raw query 0.463 [.395, .532] 0.500 – –"
    figures = "1.000 [.900, 1.000] 0.500 – +0.210 [+.000, +1.000] 45/60/15"
    assert words(lines[3]) == f"trained rewriter (step 60, best) {figures}"
    assert lines[4] == (
        "No rewrite, so the raw query was sent: trained rewriter (step 60, best) 3."
    )
    assert lines[5] == "Queries left out, having no relevant document: 2."
    # Columns stand below their headings: numbers with intervals start there, others end there.
    for heading, figure in (("NDCG@3", "1.000 ["), ("vs raw", "+0.210")):
        assert lines[1].index(heading) == lines[3].index(figure)
    for heading, figure in (("MRR@10", "0.500"), ("win/tie/loss", "45/60/15")):
        ends = lines[1].index(heading) + len(heading)
        assert ends == lines[3].index(figure) + len(figure)


def test_the_table_fits_the_width() -> None:
    long = table(RESULT, "lexical", labels={"step-60": "x" * 200}, split="validation")
    assert max(map(len, long.split("\n")[:4])) == WIDTH
    assert "…" in long
    assert "120 validation queries" in long


def test_the_markdown_table() -> None:
    lines = markdown(RESULT, "lexical", labels={"step-60": "a|b"}).split("\n")
    assert lines[0] == (
        "| lexical, 120 held-out queries | NDCG@3 [95% CI] | MRR@10 | Recall@10 "
        "| vs raw [95% CI] | win/tie/loss |"
    )
    assert lines[1] == "| --- | --: | --: | --: | --: | --: |"
    assert lines[2] == "| raw query | 0.463 [.395, .532] | 0.500 | – | – |  |"
    assert lines[3] == (
        r"| a\|b | 1.000 [.900, 1.000] | 0.500 | – | +0.210 [+.000, +1.000] | 45/60/15 |"
    )
    assert lines[4:] == [
        "",
        "No rewrite, so the raw query was sent: a|b 3.",
        "Queries left out, having no relevant document: 2.",
    ]


def test_a_backend_that_is_not_there_is_named() -> None:
    for form in (table, markdown):
        with pytest.raises(EvaluationError, match="'http'; there are: lexical"):
            form(RESULT, "http")


def outside(folder: Path, run: str) -> dict[str, float]:
    tool: Any = ir_measures  # parts of it are not typed
    qrels = list(tool.read_trec_qrels(str(folder / "qrels.trec")))
    found = list(tool.read_trec_run(str(folder / "runs" / f"{run}.trec")))
    values = tool.calc_aggregate([nDCG @ 3, RR @ 10, R @ 10], qrels, found)
    return {"ndcg@3": values[nDCG @ 3], "mrr@10": values[RR @ 10], "recall@10": values[R @ 10]}


def test_outside_tools_agree_on_the_exported_runs(tmp_path: Path) -> None:
    # Ties throughout (all scores are 1), repeats (q2), no hits (q3), an excluded query (q4).
    found = records()
    paths = write_trec(found, QRELS, tmp_path)
    assert [path.name for path in paths] == [
        "lexical.raw.trec",
        "lexical.trained.trec",
        "semantic.raw.trec",
        "semantic.trained.trec",
        "qrels.trec",
    ]
    for backend, systems in summarise(found, samples=10).items():
        for system, summary in systems.items():
            for key, value in outside(tmp_path, f"{backend}.{system}").items():
                assert value == close(summary[key]["mean"], abs=1e-9), (backend, system, key)


def test_the_files_themselves(tmp_path: Path) -> None:
    write_trec(records(), QRELS, tmp_path)
    run = (tmp_path / "runs" / "lexical.trained.trec").read_text().splitlines()
    assert run == [
        "q1 Q0 a 1 -1 trained",
        "q1 Q0 x 2 -2 trained",
        "q2 Q0 c 1 -1 trained",
        "q2 Q0 b 2 -2 trained",
        "q2 Q0 a 3 -3 trained",  # the repeated c counted once
    ]
    assert (tmp_path / "qrels.trec").read_text().splitlines() == [
        "q1 0 a 1",
        "q2 0 b 2",
        "q2 0 c 1",
        "q2 0 a 0",
        "q2 0 d 0",  # judged -1
        "q3 0 c 1",
    ]


def test_ids_with_white_space_are_encoded(tmp_path: Path) -> None:
    ids = ["annual report.pdf", "annual%20report.pdf", "a\u00a0b", "예산 공고"]
    query = Query("my query", "text")

    class Spaces(Fake):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            return [[Hit(identity, 1.0) for identity in ids] for _ in queries]

    qrels = {"my query": {"annual%20report.pdf": 1.0}}
    found = evaluate(
        "raw",
        {query.id: Rewrite(None)},
        [query],
        qrels,
        {"lexical": Spaces({})},
        measures=MEASURES,
    )
    write_trec(found, qrels, tmp_path)
    rows = (tmp_path / "runs" / "lexical.raw.trec").read_text("utf-8").splitlines()
    assert [len(row.split()) for row in rows] == [6] * 4
    assert [unquote(row.split()[2]) for row in rows] == ids
    assert rows[3].split()[2] == "예산%20공고"
    assert outside(tmp_path, "lexical.raw")["mrr@10"] == 1 / 2


def test_what_trec_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    found = records()
    halves = QRELS | {"q3": {"c": 0.5}}
    with pytest.raises(TrecError, match=r"'q3', document 'c', grade 0\.5"):
        write_trec(found, halves, tmp_path)
    with pytest.raises(TrecError, match="'q1' has metrics, but no relevant"):
        write_trec(found, {}, tmp_path)
    assert not list(tmp_path.iterdir())
