"""Records → result: means, comparisons, samples, parts of the queries."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retrievers.collection import Collection, Document
from retrievers.queries import Query
from rewards.comparison import ComparisonError
from rewriter.evaluation import EvaluationError, evaluate, evaluate_samples, summarise, write_result
from rewriter.evaluation.diagnostics import diagnose
from rewriter.evaluation.kinds import add_kinds
from rewriter.records import RecordError, Rewrite
from rewriter.systems import CollectionTerms
from tests.known_answers import ANSWERS, MEASURES, QRELS, QUERIES, TRAINED, Fake, pick, records

close = pytest.approx


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
