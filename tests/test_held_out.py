"""How several backends choose one checkpoint."""

from types import SimpleNamespace
from typing import Any

import pytest

from rewriter.best_adapter import BestAdapter
from rewriter.choice import best_of, per_query
from rewriter.records import Record


def _score(weights: dict[str, float], **found: float) -> float:
    backends = {name: SimpleNamespace(weight=weight) for name, weight in weights.items()}
    config: Any = SimpleNamespace(
        reward=SimpleNamespace(backends=backends), evaluation=SimpleNamespace(every=1)
    )
    held_out: Any = SimpleNamespace(config=config)
    run: Any = SimpleNamespace(evaluations=SimpleNamespace(is_file=lambda: False))
    best = BestAdapter(held_out, run, unwrap=lambda model: model, dispatch=lambda *_: None)
    return best._score({name: {"ndcg@3": value} for name, value in found.items()})


def _row(step: int, **queries: float) -> dict[str, Any]:
    return {"step": step, "score": sum(queries.values()) / len(queries), "queries": queries}


def test_evaluations_are_compared_on_the_queries_that_both_know() -> None:
    # The second lost the hard query: its mean is higher, though it is worse on the other one.
    whole, easier = _row(0, easy=0.8, hard=0.2), _row(1, easy=0.7)
    assert easier["score"] > whole["score"]
    assert best_of([whole, easier]) is whole
    better = _row(2, easy=0.9)
    assert best_of([whole, easier, better]) is better
    assert best_of([better, _row(3, easy=0.9, hard=0.1)]) is better  # equal: the earlier one


def test_whole_evaluations_and_those_of_other_versions_are_compared_by_their_score() -> None:
    older, newer = {"step": 0, "score": 0.5}, _row(1, a=0.4, b=0.7)
    assert best_of([older, newer]) is newer
    assert best_of([_row(0, a=0.9, b=0.1), _row(1, a=0.4, b=0.6)]) == _row(0, a=0.9, b=0.1)
    assert best_of([]) is None


def _record(query: str, backend: str, value: float | None) -> Record:
    metrics = {} if value is None else {"ndcg@3": value}
    return Record(
        "trained", backend, "validation", query, "human", "q", "r", None, "r", (), (), metrics
    )


def test_a_query_that_one_backend_could_not_search_counts_nowhere() -> None:
    found = {("a", "lexical"): 0.5, ("a", "mine"): 1.0, ("b", "lexical"): 1.0, ("b", "mine"): None}
    records = [_record(*key, value) for key, value in found.items()]
    # (3 × .5 + 1 × 1) / 4
    assert per_query(records, {"lexical": 3, "mine": 1}) == {"a": pytest.approx(0.625)}


def test_weights_are_those_of_the_reward() -> None:
    # (3 × .4 + 1 × .8) / 4
    assert _score({"lexical": 3, "mine": 1}, lexical=0.4, mine=0.8) == pytest.approx(0.5)


def test_a_backend_of_weight_0_has_no_say() -> None:
    assert _score({"lexical": 1, "mine": 0}, lexical=0.5, mine=0.9) == pytest.approx(0.5)


def test_without_any_weight_all_count_alike() -> None:
    assert _score({"lexical": 0, "mine": 0}, lexical=0.5, mine=0.9) == pytest.approx(0.7)
