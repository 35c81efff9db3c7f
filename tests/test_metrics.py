"""The measures against values worked out by hand and against ir_measures (trec_eval underneath).

Discounts 1 / log2(rank + 1) of ranks 1 to 5: 1, .63093, .5, .43068, .38685.
"""

import random
from math import log2

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.metrics import (
    MEASURES,
    Evaluation,
    Measure,
    MetricError,
    dangling,
    evaluate,
    hit,
    mrr,
    ndcg,
    precision,
    recall,
)

close = pytest.approx


@pytest.mark.parametrize(("rank", "value"), [(1, 1.0), (2, 0.63093), (3, 0.5), (4, 0.0)])
def test_one_relevant_document(rank: int, value: float) -> None:
    ranking = ["x", "y", "z"]
    ranking.insert(rank - 1, "gold")
    assert ndcg(ranking, {"gold": 1}, 3) == close(value, abs=5e-6)  # 1 / log2(rank + 1)
    assert mrr(ranking, {"gold": 1}) == close(1 / rank)
    assert mrr(ranking, {"gold": 1}, 3) == close(1 / rank if rank <= 3 else 0.0)
    assert hit(ranking, {"gold": 1}, 3) == (rank <= 3)


def test_a_query_without_hits_stays_in_the_mean() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    for run in ({"q1": ["a"]}, {"q1": ["a"], "q2": []}):
        result = evaluate(run, qrels, ["ndcg@3", "mrr", "recall@3"])
        assert result.n == 2
        for key in ("ndcg@3", "mrr", "recall@3"):
            assert result.mean(key) == 0.5  # (1 + 0) / 2
        assert result.per_query["mrr"] == {"q1": 1.0, "q2": 0.0}


def test_nothing_relevant_is_excluded_and_listed() -> None:
    run = {"q1": ["a"], "q3": ["b"], "q4": ["d"], "q9": ["a"]}
    qrels = {"q1": {"a": 1}, "q2": {}, "q3": {"b": 0}, "q4": {"d": -1}}
    result = evaluate(run, qrels, ["ndcg@3"])
    assert (result.n, result.mean("ndcg@3")) == (1, 1.0)
    assert result.excluded == ["q2", "q3", "q4"]
    assert result.unjudged == ["q9"]
    assert [Measure(name)(["b"], {"b": 0}) for name in MEASURES] == [0.0] * len(MEASURES)


def test_no_mean_over_nothing() -> None:
    with pytest.raises(MetricError, match="none of the 1 queries"):
        evaluate({}, {"q": {}}, ["mrr"]).mean("mrr")
    with pytest.raises(MetricError, match="ndcg@5 was not computed; choose one of mrr"):
        evaluate({}, {"q": {"a": 1}}, ["mrr"]).mean("ndcg@5")


def test_linear_and_exponential_gain() -> None:
    ranking, grades = ["a", "b"], {"a": 1, "b": 2}
    # (1 + 2 × .63093) / (2 + 1 × .63093) = 2.26186 / 2.63093
    assert ndcg(ranking, grades) == close(0.85972, abs=5e-6)
    # (1 + 3 × .63093) / (3 + 1 × .63093) = 2.89279 / 3.63093
    assert ndcg(ranking, grades, gains="exponential") == close(0.79671, abs=5e-6)


def test_graded_ideal() -> None:
    grades = {"a": 2, "b": 1, "c": 1, "x": 0, "y": 0}
    # (1 + 2 × .63093 + 1 × .43068) / (2 + .63093 + .5) = 2.69254 / 3.13093
    assert ndcg(["b", "a", "x", "c", "y"], grades, 5) == close(0.85998, abs=5e-6)


def test_ideal_comes_from_the_judgements() -> None:
    five = dict.fromkeys("abcde", 1)
    # (1 + .5) / (1 + .63093 + .5), where the ideal of the list alone would be 1.63093
    assert ndcg(["a", "x", "b"], five, 3) == close(0.70392, abs=5e-6)
    # 1 / 2.13093: three are relevant, only the first is found
    assert ndcg(["a"], {"a": 1, "b": 1, "c": 1}, 3) == close(0.46928, abs=5e-6)


@pytest.mark.parametrize("ranking", [[], ["x"], ["x", "y"]])
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("k", [3, 10, None])
def test_a_short_list_without_the_gold_is_zero(ranking: list[str], name: str, k: int) -> None:
    assert Measure(name, k)(ranking, {"gold": 1}) == 0.0


def test_dangling_judgements_count_and_are_listed() -> None:
    grades = {"a": 1, "ghost": 1}
    assert recall(["a"], grades) == 0.5
    assert ndcg(["a"], grades, 3) == close(0.61315, abs=5e-6)  # 1 / (1 + .63093)
    assert dangling({"q": grades, "r": {"a": 1}}, {"a", "b"}) == [("q", "ghost")]


def test_a_repeated_document_counts_once_and_frees_its_place() -> None:
    grades = {"a": 1, "b": 1}
    assert recall(["a", "a", "a"], grades) == 0.5
    assert ndcg(["a", "a", "b"], grades, 2) == 1.0  # read as a, b
    assert mrr(["x", "x", "a"], grades) == 0.5  # a stands second
    assert precision(["a", "a", "x"], grades) == 0.5  # 1 of 2 distinct


def test_precision_divides_by_k_however_short_the_list() -> None:
    assert precision(["a"], {"a": 1}, 5) == close(0.2)  # 1 / 5
    assert precision(["a", "x"], {"a": 1}) == 0.5  # 1 / 2, the whole list


@pytest.mark.parametrize("k", [0, -1, 1.5, "3"])
def test_k_below_one_is_an_error_that_names_it(k: int) -> None:
    with pytest.raises(MetricError, match=f"k is {k!r}"):
        recall(["a"], {"a": 1}, k)
    with pytest.raises(MetricError, match="k is 0"):
        evaluate({}, {}, ["ndcg@0"])


@pytest.mark.parametrize("key", ["ndcg", "ndcg@3", "ndcg_exp@5", "mrr", "recall@100", "hit@1"])
def test_keys_round_trip(key: str) -> None:
    assert str(Measure.parse(key)) == str(Measure.parse(f" {key.upper()} ")) == key
    assert Measure.parse("nDCG@3") == Measure("ndcg", 3)
    assert Measure.parse("ndcg_exp@5") == Measure("ndcg", 5, "exponential")


@pytest.mark.parametrize("text", ["map", "ndcg@", "ndcg@x", "", "ndcg 3", "@3", "_exp@3"])
def test_an_unknown_measure_says_what_is_allowed(text: str) -> None:
    with pytest.raises(MetricError) as error:
        Measure.parse(text)
    assert repr(text) in str(error.value)
    assert "ndcg, mrr, recall, precision, hit" in str(error.value)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(MetricError, match=r"'log'.*linear, exponential"):
        ndcg(["a"], {"a": 1}, gains="log")  # type: ignore[arg-type]
    with pytest.raises(MetricError, match="mrr has no gains"):
        Measure.parse("mrr_exp@3")
    with pytest.raises(MetricError, match="unknown"):
        Measure("bleu")
    with pytest.raises(MetricError, match="give a list"):
        evaluate({}, {}, "ndcg@3")
    with pytest.raises(MetricError, match="give a list"):
        evaluate({}, {}, [])


@pytest.mark.parametrize("ranking", ["ab", {"a": 1.0}])
def test_a_ranking_of_the_wrong_type_is_named(ranking: list[str]) -> None:
    with pytest.raises(TypeError, match=type(ranking).__name__):
        ndcg(ranking, {"a": 1})


OUTSIDE = {
    **{f"ndcg@{k}": ir_measures.nDCG @ k for k in (1, 3, 5, 10, 50)},
    **{f"mrr@{k}": ir_measures.RR @ k for k in (1, 3, 10)},
    **{f"recall@{k}": ir_measures.R @ k for k in (1, 3, 5, 10, 50)},
    **{f"precision@{k}": ir_measures.P @ k for k in (1, 3, 5, 10, 50)},
    **{f"hit@{k}": ir_measures.Success @ k for k in (1, 3, 5, 10, 50)},
    # trec_eval knows no exponential gain: the same grades mapped to 2^g - 1 give it.
    **{f"ndcg_exp@{k}": ir_measures.nDCG(gains={2: 3, 3: 7}) @ k for k in (3, 10)},
    "ndcg": ir_measures.nDCG,
    "mrr": ir_measures.RR,
}

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]


def _random_case(rng: random.Random) -> tuple[list[str], dict[str, int]]:
    """A ranking with tied scores and repeats, and judgements from -2 to 3 that cover it in part."""
    docs = [f"d{i}" for i in range(rng.randint(1, 30))]
    scored = [(rng.randint(0, 4), doc) for doc in rng.choices(docs, k=rng.randint(0, 30))]
    ranking = [doc for _, doc in sorted(scored, key=lambda pair: -pair[0])]  # ties: as they came
    judged = rng.sample(docs, rng.randint(0, len(docs))) + ["ghost"] * rng.randint(0, 1)
    return ranking, {doc: rng.choice((-2, -1, 0, 0, 1, 1, 2, 3)) for doc in judged}


def _random_run(queries: int) -> tuple[Run, Qrels]:
    rng = random.Random(7)
    cases = {f"q{i}": _random_case(rng) for i in range(queries)}
    run = {query: ranking for query, (ranking, _) in cases.items() if rng.random() < 0.9}
    return run, {query: grades for query, (_, grades) in cases.items()}


def _outside(run: Run, qrels: Qrels) -> dict[str, dict[str, float]]:
    # A run is a dict there, so repeats cannot be told; score = -rank leaves no tie to break.
    exported = {
        query: {doc: -float(rank) for rank, doc in enumerate(dict.fromkeys(ranking), 1)}
        for query, ranking in run.items()
    }
    keys = {measure: key for key, measure in OUTSIDE.items()}
    values: dict[str, dict[str, float]] = {key: {} for key in OUTSIDE}
    # Beside a measure with gains, ir_measures 0.4.3 may work a plain nDCG out with those gains: it
    # puts it into whichever call of pytrec_eval comes first, in the order of a set. So: apart.
    exponential = [measure for key, measure in OUTSIDE.items() if key.startswith("ndcg_exp")]
    plain = [measure for measure in OUTSIDE.values() if measure not in exponential]
    for measures in (plain, exponential):
        for metric in ir_measures.iter_calc(measures, qrels, exported):
            values[keys[metric.measure]][metric.query_id] = metric.value
    return values


def test_equal_to_ir_measures_on_random_rankings() -> None:
    """4,000 queries, a tenth of them absent from the run, and all judgements from -2 to 3.

    ir_measures treats a grade below 0 as we do: gain 0, not relevant, no part of the ideal ranking.
    But pytrec_eval 0.5.11 under it crashes or hangs on a query whose grades are all below 0, if
    another was scored before, so the queries that we exclude, these among them, are kept from it.
    """
    run, qrels = _random_run(4000)
    result = evaluate(run, qrels, list(OUTSIDE))
    scored = {query: qrels[query] for query in result.per_query["mrr"]}
    outside = _outside({q: r for q, r in run.items() if q in scored}, scored)
    assert result.n > 2500
    assert set(result.excluded) == {q for q, g in qrels.items() if max(g.values(), default=0) < 1}
    assert any(min(grades.values()) < 0 for grades in scored.values())
    assert any(len(set(run.get(query, []))) < len(run.get(query, [])) for query in scored)
    for key in OUTSIDE:
        assert result.per_query[key] == close(outside[key], abs=1e-9), key


def test_single_measures_are_the_evaluation() -> None:
    run, qrels = _random_run(200)
    result = evaluate(run, qrels, list(OUTSIDE))
    assert result == evaluate(run, qrels, [Measure.parse(key) for key in OUTSIDE])  # twice: equal
    for key, values in result.per_query.items():
        for query, value in values.items():
            assert Measure.parse(key)(run.get(query, []), qrels[query]) == value
    functions = {"ndcg": ndcg, "mrr": mrr, "recall": recall, "precision": precision, "hit": hit}
    assert functions.keys() == MEASURES.keys()
    for name, function in functions.items():
        assert function(["x", "a"], {"a": 1}, 2) == Measure(name, 2)(["x", "a"], {"a": 1})


documents = st.sampled_from("abcdefgh")
judgements = st.dictionaries(documents, st.integers(-2, 4))


@given(st.lists(documents), judgements, st.integers(1, 9))
def test_properties(ranking: list[str], grades: dict[str, int], k: int) -> None:
    values = {name: Measure(name, k)(ranking, grades) for name in MEASURES}
    assert all(0.0 <= value <= 1.0 for value in values.values())
    assert len({value > 0 for value in values.values()}) == 1  # all of them find something, or none
    relevant = {doc: grade for doc, grade in grades.items() if grade > 0}
    ideal = sorted(relevant, key=lambda doc: -relevant[doc])
    assert not relevant or ndcg(ideal, grades, k) == 1.0
    # By the definition, without any of the shortcuts.
    dcg = sum(relevant.get(d, 0) / log2(i + 2) for i, d in enumerate([*dict.fromkeys(ranking)][:k]))
    best = sum(relevant[d] / log2(i + 2) for i, d in enumerate(ideal[:k]))
    assert values["ndcg"] == close(dcg / best if best else 0.0)


def test_evaluation_of_no_query_has_n_zero() -> None:
    assert evaluate({"q": ["a"]}, {}, ["mrr"]) == Evaluation({"mrr": {}}, [], ["q"])
    assert evaluate({}, {}, ["mrr"]).n == 0
