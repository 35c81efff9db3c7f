"""Intervals and paired comparisons, against values that can be worked out by hand."""

from math import comb, sqrt

import numpy as np
import pytest

from rewards import comparison
from rewards.comparison import ComparisonError, Interval, Paired, mean_interval, paired

close = pytest.approx


def named(*values: float) -> dict[str, float]:
    return {f"q{number}": value for number, value in enumerate(values)}


def test_equal_values_have_no_width() -> None:
    # .7 fifty times: numpy's means round up by 2e-16, which must not put the mean outside.
    mean, low, high, n = mean_interval([0.7] * 50)
    assert low <= mean <= high
    assert (mean, low, high) == close((0.7,) * 3, abs=1e-12)
    assert n == 50
    assert mean_interval([0.4]) == Interval(0.4, 0.4, 0.4, 1)


def test_the_interval_of_two_values_is_their_range() -> None:
    # Resamples of (0, 1) have means 0, .5, 1 with shares 1/4, 1/2, 1/4: both ends beyond 2.5%.
    assert mean_interval([0.0, 1.0]) == Interval(0.5, 0.0, 1.0, 2)


def test_the_interval_is_that_of_the_binomial() -> None:
    # 30 of 100 queries at 1: the resampled sum is binomial, its 2.5% and 97.5% points 21 and 39.
    def below(count: int) -> float:
        return sum(comb(100, i) * 0.3**i * 0.7 ** (100 - i) for i in range(count + 1))

    assert below(20) < 0.025 < below(21)
    assert below(38) < 0.975 < below(39)
    found = mean_interval([1.0] * 30 + [0.0] * 70, samples=20_000)
    assert found.mean == close(0.3)
    assert (found.low, found.high) == close((0.21, 0.39), abs=0.011)


def test_many_values_come_near_the_normal_interval() -> None:
    values = np.random.default_rng(1).random(2_000)
    half = 1.96 * values.std() / sqrt(2_000)
    found = mean_interval(values.tolist(), samples=4_000)
    assert found.low == close(values.mean() - half, abs=0.1 * half)
    assert found.high == close(values.mean() + half, abs=0.1 * half)


def test_the_same_seed_gives_the_same_in_any_order() -> None:
    values = np.random.default_rng(2).random(40).tolist()
    assert mean_interval(values) == mean_interval(values[::-1])
    assert mean_interval(values) != mean_interval(values, seed=1)
    system, baseline = named(*values), named(*([0.5] * 40))
    mixed = dict(reversed(system.items()))
    assert paired(system, baseline) == paired(mixed, baseline)


def test_chunks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).normal(0.1, 1, 30).tolist()
    whole = paired(named(*values), named(*([0.0] * 30)), samples=999)
    monkeypatch.setattr(comparison, "_CHUNK", 7)  # below one row of 30: a row at a time
    by_rows = paired(named(*values), named(*([0.0] * 30)), samples=999)
    assert by_rows[:7] == close(whole[:7], abs=0.05)
    assert by_rows.p == close(whole.p, abs=0.05)
    exact = named(0.3, 0.1, -0.2), named(0.0, 0.0, 0.0)
    assert paired(*exact).p == 6 / 8


def test_wins_ties_losses_and_the_difference() -> None:
    system, baseline = named(1.0, 0.5, 0.5, 0.0), named(0.5, 0.5, 0.5 + 1e-12, 1.0)
    found = paired(system, baseline)
    assert (found.win, found.tie, found.loss, found.n) == (1, 2, 1, 4)
    assert found.diff == close((0.5 + 0 + 0 - 1) / 4)
    assert found.low < found.diff < found.high
    mirrored = paired(baseline, system)
    assert (mirrored.win, mirrored.loss) == (1, 1)
    assert mirrored.diff == close(-found.diff)


def test_pairing_takes_out_what_the_queries_share() -> None:
    base = np.random.default_rng(4).random(60).tolist()
    found = paired(named(*(value + 0.01 for value in base)), named(*base))
    assert (found.low, found.high) == close((0.01, 0.01), abs=1e-9)
    assert mean_interval(base).high - mean_interval(base).low > 0.1


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ((0.0, 0.0), 1.0),  # nothing moved
        ((0.2,), 1.0),  # both signs are as extreme
        ((0.2, 0.2, 0.2), 2 / 8),  # +++ and ---
        ((0.2, 0.2, 0.2, 0.0, 0.0), 2 / 8),  # ties say nothing
        ((0.2, 0.2, -0.2), 8 / 8),  # every flip sums to ±.2 or ±.6
        ((0.1, 0.2, 0.3), 2 / 8),  # .6 only with equal signs
        ((-0.1, 0.2, 0.3), 4 / 8),  # |sum| .4: ±(-1,2,3) and ±(1,2,3)
        ((0.6, -0.2, 0.1, -0.1), 14 / 16),  # sums .4 apart only by rounding are as extreme
        ((0.1,) * 10, 2 / 1024),
    ],
)
def test_few_flips_are_all_tried(differences: tuple[float, ...], p: float) -> None:
    found = paired(named(*differences), named(*([0.0] * len(differences))))
    assert found.p == close(p)


def test_many_flips_are_drawn() -> None:
    # 20 wins, 10 losses of one size: the binomial says 2 P(X >= 20 of 30) = .0987.
    exact = 2 * sum(comb(30, i) for i in range(20, 31)) / 2**30
    values = [0.1] * 20 + [-0.1] * 10
    found = paired(named(*values), named(*([0.0] * 30)), samples=20_000)
    assert found.p == close(exact, abs=0.01)
    clear = paired(named(*([0.1] * 40)), named(*([0.0] * 40)), samples=999)
    assert clear.p == close(1 / 1000)  # never 0: what was observed is one of the flips


def test_different_queries_cannot_be_paired() -> None:
    with pytest.raises(ComparisonError, match=r"1 are not in the baseline \('c'\), 1 .*\('b'\)"):
        paired({"a": 1.0, "c": 0.0}, {"a": 1.0, "b": 0.0})
    with pytest.raises(ComparisonError, match=r"'q0', 'q1', 'q2', …"):
        paired(named(0.0, 0.0, 0.0, 0.0), {})


@pytest.mark.parametrize(
    ("values", "samples", "message"),
    [
        ([], 10, "no values"),
        ([0.5, float("nan")], 10, "not a finite number"),
        ([0.5], 0, "samples is 0"),
    ],
)
def test_what_cannot_be_averaged(values: list[float], samples: int, message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        mean_interval(values, samples=samples)
    with pytest.raises(ComparisonError, match=message):
        paired(named(*values), named(*([0.0] * len(values))), samples=samples)


def test_a_result_unpacks_by_name() -> None:
    found = paired({"a": 1.0}, {"a": 0.0})
    assert found == Paired(diff=1.0, low=1.0, high=1.0, win=1, tie=0, loss=0, n=1, p=1.0)


def test_columns_share_their_resamples() -> None:
    columns = {"a": [0.0, 1.0, 1.0], "b": [0.25, 0.5, 1.0], "short": [0.0, 1.0]}
    found = comparison.mean_intervals(columns, samples=500, seed=3)
    assert list(found) == list(columns)
    for name, values in columns.items():
        assert found[name] == mean_interval(values, samples=500, seed=3)


def test_holm() -> None:
    # In ascending order: 3 × .01, 2 × .02, then 1 × .03, which must not fall below .04.
    assert comparison.holm({"x": 0.03, "y": 0.01, "z": 0.02}) == close(
        {"x": 0.04, "y": 0.03, "z": 0.04}
    )
    assert comparison.holm({"x": 0.6, "y": 0.7}) == {"x": 1.0, "y": 1.0}
    assert comparison.holm({}) == {}


def test_queries_needed() -> None:
    # Differences .1 and −.1 ten times each: s² = 20 × .01 / 19. (1.95996 + .84162)² = 7.8489.
    values = named(*[0.1, 0.0] * 10)
    baseline = named(*[0.0, 0.1] * 10)
    n = 7.8489 * 0.2 / 19 / 0.01**2
    assert comparison.queries_needed(values, baseline) == int(n) + 1 == 827
    assert comparison.queries_needed(values, baseline, gain=0.1) == 9
    assert comparison.queries_needed(values, values) is None  # no spread to judge by
    assert comparison.queries_needed({"q": 1.0}, {"q": 0.0}) is None
    with pytest.raises(ComparisonError, match="'q0'"):
        comparison.queries_needed(values, {})
