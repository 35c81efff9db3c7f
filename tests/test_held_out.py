"""How several backends choose one checkpoint."""

from types import SimpleNamespace
from typing import Any

import pytest

from rewriter.held_out import BestAdapter


def _score(weights: dict[str, float], **found: float) -> float:
    backends = {name: SimpleNamespace(weight=weight) for name, weight in weights.items()}
    config: Any = SimpleNamespace(
        reward=SimpleNamespace(backends=backends), evaluation=SimpleNamespace(every=1)
    )
    held_out: Any = SimpleNamespace(config=config)
    run: Any = SimpleNamespace(evaluations=SimpleNamespace(is_file=lambda: False))
    best = BestAdapter(held_out, run, unwrap=lambda model: model, dispatch=lambda *_: None)
    return best._score({name: {"ndcg@3": value} for name, value in found.items()})


def test_weights_are_those_of_the_reward() -> None:
    # (3 × .4 + 1 × .8) / 4
    assert _score({"lexical": 3, "mine": 1}, lexical=0.4, mine=0.8) == pytest.approx(0.5)


def test_a_backend_of_weight_0_has_no_say() -> None:
    assert _score({"lexical": 1, "mine": 0}, lexical=0.5, mine=0.9) == pytest.approx(0.5)


def test_without_any_weight_all_count_alike() -> None:
    assert _score({"lexical": 0, "mine": 0}, lexical=0.5, mine=0.9) == pytest.approx(0.7)
