"""Prompts that taught nothing are drawn less often, in an order that survives a break."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewards.search import StepScores
from rewards.shaping import Outcome
from rewriter.informative import GroupLog, InformativeSampler, SamplingLogError
from rewriter.run_directory import RunDirectory
from tests import own_rewards, tiny
from tests.interrupted_runs import _logged, _same
from tests.own_rewards import Crash

ROWS = [{"query_id": f"q{n}"} for n in range(4)]


def _log(folder: Path, rows: Any = ROWS) -> GroupLog:
    return GroupLog(RunDirectory(folder), rows, ["lexical", "semantic"], writes=True)


def _scores(step: int, **groups: tuple[float | None, ...]) -> StepScores:
    outcomes = [
        Outcome((query, "lexical", "semantic"), value, False, 0)
        for query, values in groups.items()
        for value in values
    ]
    return StepScores([], {}, step, outcomes)


def _sampler(log: GroupLog, **given: int) -> InformativeSampler:
    values = {"rows": 4, "size": 2, "generations": 2, "repeats": 1, "seed": 0, "accumulation": 1}
    return InformativeSampler(log, **(values | given))


def test_a_group_taught_something_if_its_searches_differed(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.watch(_scores(0, q0=(1.0, 1.0), q1=(0.0, 0.0)))
    log.watch(_scores(1, q2=(0.0, 1.0), q3=(None, None)))  # a failed search says nothing
    assert log.batches == [{0: False, 1: False}, {2: True}]
    assert [row["step"] for row in tiny.lines(tmp_path / "sampling.jsonl")] == [1, 2]
    assert _log(tmp_path).batches == log.batches


def test_a_prompt_for_each_backend_is_a_prompt_of_its_own(tmp_path: Path) -> None:
    rows = [{"query_id": "q0", "backends": [name]} for name in ("lexical", "semantic")]
    log = _log(tmp_path, rows)
    outcomes = [Outcome(("q0", "semantic"), value, False, 0) for value in (0.0, 1.0)]
    log.watch(StepScores([], {}, 0, outcomes))
    assert log.batches == [{1: True}]


def test_weights(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.batches = [{0: True, 1: False}, {2: False}, {1: True}]
    # With one of each kind added, the share is (2 + 1) / (4 + 2).
    weights = _sampler(log)._weights(log.batches)
    assert list(weights) == [1.0, 1.0, 0.5 / 4, 0.5]


def test_how_often_prompts_are_drawn(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.batches = [{0: True, 1: False, 2: False, 3: False}]  # share (1 + 1) / (4 + 2)
    sampler = _sampler(log, size=1)
    drawn = Counter(sampler.draw(number, 1)[0] for number in range(4000))
    # Weights 1 and three times 1/12: 0.8 and 0.067 each.
    assert drawn[0] / 4000 == pytest.approx(0.8, abs=0.03)
    assert drawn[1] / 4000 == pytest.approx(0.067, abs=0.02)
    uniform = Counter(sampler.draw(number, 0)[0] for number in range(4000))
    assert all(count / 4000 == pytest.approx(0.25, abs=0.03) for count in uniform.values())


def test_the_layout_is_that_of_trl(tmp_path: Path) -> None:
    """Each prompt `generations` times, the batch `repeats` times, each prompt once in a batch."""
    sampler = _sampler(_log(tmp_path), repeats=2, accumulation=2)
    indices = iter(sampler)
    first = [next(indices) for _ in range(8)]
    assert first[:4] == first[4:]
    assert first[0] == first[1] != first[2] == first[3]
    assert len(sampler) == 16  # 2 batches × 2 prompts × 2 generations × 2 repeats


@pytest.mark.parametrize(
    ("accumulation", "repeats", "over"),
    [
        # One dataloader batch a step; the next one is fetched before the step: b is fetched with
        # step b - 1, when those before it are over.
        (1, 1, [0, 0, 1, 2, 3]),
        # A generation batch lasts a step of two: the same.
        (2, 2, [0, 0, 1, 2, 3]),
        # Four generation batches a step, fetched together, and the first of the next step.
        (4, 1, [0, 0, 0, 0, 0, 4, 4, 4, 4, 8]),
        # A generation batch lasts two steps: it is known when the first of them is over.
        (1, 2, [0, 1, 2, 3]),
    ],
)
def test_what_is_known_when_a_batch_is_fetched(
    tmp_path: Path, accumulation: int, repeats: int, over: list[int]
) -> None:
    sampler = _sampler(_log(tmp_path), rows=40, accumulation=accumulation, repeats=repeats)
    assert [sampler._over(0, batch) for batch in range(len(over))] == over
    assert [sampler._over(1, batch) - 20 for batch in range(len(over))] == over


def test_a_log_that_lacks_batches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SamplingLogError, match=r"groups of 3 batches, and sampling.jsonl has 0"):
        _sampler(_log(tmp_path)).draw(5, 3)


SECTIONS: dict[str, Any] = {
    "sampling": "informative",
    "reward": {"kind": "hit", "k": 1, "function": "tests.own_rewards:dies"},
    "evaluation": {"every": 1},
    "trainer": {"max_steps": 6},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    finished: RunDirectory = tiny.train_tiny(tmp_path_factory.mktemp("informative"), **SECTIONS)
    return finished


def _drawn(run: RunDirectory) -> list[str]:
    return [row["query_id"] for row in tiny.lines(run.completions(0))]


def test_a_run_draws_by_it(whole: RunDirectory) -> None:
    log = tiny.lines(whole.sampling)
    assert [row["step"] for row in log] == [1, 2, 3, 4, 5, 6]
    assert all(len(row["groups"]) == 2 for row in log)
    rows = [{"query_id": f"q{n}"} for n in range(6)]
    known = GroupLog(whole, rows, ["lexical"], writes=False)
    sampler = _sampler(known, rows=6, size=2, generations=4, seed=42)
    # 3 batches an epoch; the second epoch begins knowing the whole first one.
    over = [0, 0, 1, 3, 3, 4]
    expected = [f"q{place}" for n in range(6) for place in sampler.draw(n, over[n])]
    assert _drawn(whole)[::4] == expected


@pytest.mark.parametrize("step", [2, 4, 6], ids=["in epoch 1", "at its end", "in epoch 2"])
def test_a_resumed_run_draws_the_same(whole: RunDirectory, tmp_path: Path, step: int) -> None:
    import shutil

    for part in ("policy", "collection"):
        shutil.copytree(whole.path.parent / part, tmp_path / part)
    own_rewards.die_in = step
    try:
        with pytest.raises(Crash):
            tiny.train_tiny(tmp_path, **SECTIONS)
    finally:
        own_rewards.die_in = None
    run = tiny.train_tiny(tmp_path, resume=True, **SECTIONS)
    assert _drawn(run) == _drawn(whole)
    assert tiny.lines(run.sampling) == tiny.lines(whole.sampling)
    assert _same(run.best, whole.best)
    assert _logged(run.metrics) == _logged(whole.metrics)
