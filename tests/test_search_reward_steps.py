"""The reward that searches: one scoring a step, and which backend applies."""

from types import SimpleNamespace

import pytest

from rewards import StepScores
from rewards.search import RewardInputError
from tests.search_panels import Fake, Log, columns, panel, rewards

# --- one scoring a step


def test_eight_equal_rewrites_are_searched_once() -> None:
    fake, log = Fake(), Log()
    (values,) = rewards(panel(fake), ["r2"] * 8, log_metric=log).values()
    assert values == pytest.approx([0.63093] * 8, abs=1e-5)
    assert fake.calls == [["r2"]]
    assert log["search/distinct_texts"] == 1


def test_two_backends_are_logged_apart_and_searched_once_each() -> None:
    steps: list[StepScores] = []
    good, poor = Fake("lexical"), Fake("semantic")
    poor.broken = 0
    both = panel(
        good,
        poor,
        backends={"lexical": 0.7, "semantic": {"kind": "hit", "k": 1, "weight": 0.3}},
        on_step=steps.append,
    )
    assert rewards(both, ["r2"]) == {
        "lexical_ndcg@3": pytest.approx([0.63093], abs=1e-5),
        "semantic_hit@1": [0.0],
    }
    assert both.weights == [0.7, 0.3]
    assert (good.calls, poor.calls, len(steps)) == ([["r2"]], [["r2"]], 1)


def test_a_repeated_batch_is_a_step_of_its_own() -> None:
    # A collapsed policy writes the same again: a rank that took it for the same step would skip
    # the exchange that the others wait in.
    steps: list[StepScores] = []
    both = panel(Fake("a"), Fake("b"), on_step=steps.append)
    first = rewards(both, ["r1", "r2"])
    assert rewards(both, ["r1", "r2"]) == first
    assert len(steps) == 2


def test_other_content_never_gets_the_last_columns() -> None:
    both = panel(Fake("a"), Fake("b"))
    first, second = both.functions
    assert first(completions=["r1"], **columns(1)) == [1.0]
    assert second(completions=["no"], **columns(1)) == [0.0]
    completion = [{"role": "assistant", "content": "r1"}]
    assert first(completions=[completion], **columns(1)) == [1.0]
    completion[0]["content"] = "no"  # changed in place
    assert second(completions=[completion], **columns(1)) == [0.0]


def test_the_cache_hit_rate_is_of_the_step() -> None:
    log, one = Log(), panel(Fake())
    rewards(one, ["r1", "r2"], log_metric=log)
    assert log["lexical/cache_hit_rate"] == 0.0
    rewards(one, ["r1", "r2", "r3", "r4"], log_metric=log)
    assert log["lexical/cache_hit_rate"] == 0.5
    assert log["search/reward_seconds"] > 0


def test_a_step_shows_its_rows() -> None:
    steps: list[StepScores] = []
    rewards(
        panel(Fake("lexical"), Fake("semantic", bad=["r2"]), on_step=steps.append),
        ["Query: r1", "r2", "<think>"],
        trainer_state=SimpleNamespace(global_step=7),
    )
    (step,) = steps
    first, second, third = step.rows
    assert step.step == 7
    assert (first.query_id, first.query, first.completion) == ("q1", "raw", "Query: r1")
    assert (first.search_text, first.parsed.text, first.failed) == ("r1", "r1", False)
    assert [hit.id for hit in first.hits["semantic"]] == ["gold", "other-2", "other-3"]
    assert first.rewards == {"lexical_ndcg@3": 1.0, "semantic_ndcg@3": 1.0}
    assert second.failed
    assert set(second.hits) == {"lexical"}
    assert set(second.rewards.values()) == {None}
    assert (third.search_text, third.parsed.failure, third.hits) == (None, "unclosed_think", {})


# --- which backend applies


def test_a_backend_that_does_not_apply_is_none_and_no_failure() -> None:
    log = Log()
    lexical, semantic = Fake("lexical"), Fake("semantic", bad=["r2"])
    found = rewards(
        panel(lexical, semantic),
        ["r1", "r2", "r1", "r3"],
        query_id=["a", "a", "b", "b"],
        backends=[["lexical"], ["lexical"], None, ["semantic", "hybrid"]],
        log_metric=log,
    )
    assert found == {
        "lexical_ndcg@3": [1.0, pytest.approx(0.63093, abs=1e-5), 1.0, None],
        "semantic_ndcg@3": [None, None, 1.0, 0.5],
    }
    assert log["search/failures"] == 0
    assert semantic.calls == [["r1", "r3"]]


def test_one_query_with_a_prompt_for_each_backend_is_two_groups() -> None:
    # Over both together outcomes would differ, and length would be charged.
    found = rewards(
        panel(Fake("lexical"), Fake("semantic"), length_weight=0.1),
        ["long before</think>r1", "r1", "long before</think>no", "no"],
        backends=[["lexical"], ["lexical"], ["semantic"], ["semantic"]],
    )
    assert found["format"] == [0.0, 0.0, 0.0, 0.0]


def test_a_row_that_nothing_rewards_is_refused() -> None:
    with pytest.raises(RewardInputError, match=r"lexcal.*names none of lexical"):
        rewards(panel(Fake()), ["r1"], backends=[["lexcal"]])
