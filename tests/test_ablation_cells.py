"""Means, differences and their intervals over runs and queries, worked out by hand."""

import pytest

from rewriter.ablation.cells import difference, headline, mean_of, pooled
from tests.tiny_records import record

close = pytest.approx


def test_a_mean_over_runs_and_queries() -> None:
    found = mean_of([{"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 1.0, "c": 9.0}], samples=2000)
    assert found is not None
    assert found.mean == close(2.5 / 4)  # only queries that both have
    assert (found.runs, found.queries) == (2, 2)
    # Both runs the first one and both queries a: 0, with a chance of 1/16; the best is 1.
    assert (found.low, found.high) == (0.0, 1.0)


def test_equal_values_have_no_interval() -> None:
    found = mean_of([{"a": 0.3, "b": 0.3}] * 3, samples=100)
    assert found is not None
    assert found[:3] == close((0.3, 0.3, 0.3))
    assert found.low <= found.mean <= found.high


def test_seeds_that_differ_widen_the_interval() -> None:
    queries = [str(n) for n in range(200)]
    one_run = mean_of([dict.fromkeys(queries, 0.5)], samples=500)
    apart = mean_of([dict.fromkeys(queries, 0.4), dict.fromkeys(queries, 0.6)], samples=500)
    assert one_run is not None
    assert apart is not None
    assert one_run.high - one_run.low == close(0)
    assert (apart.low, apart.high) == close((0.4, 0.6))


def test_with_one_run_it_is_the_bootstrap_over_queries() -> None:
    from rewards.comparison import mean_interval

    values = {str(n): (n % 7) / 6 for n in range(150)}
    mine, usual = mean_of([values]), mean_interval(list(values.values()))
    assert mine is not None
    assert mine.mean == close(usual.mean)
    assert (mine.low, mine.high) == close((usual.low, usual.high), abs=0.005)


def test_nothing_has_no_mean() -> None:
    assert mean_of([]) is None
    assert mean_of([{"a": 1.0}, {"b": 1.0}]) is None
    assert pooled([]) is None


def test_differences_are_paired_by_run_and_query() -> None:
    ones = {"seed1": {"a": 1.0, "b": 0.5}, "seed2": {"a": 0.0}, "seed3": {"a": 0.9}}
    others = {"seed1": {"a": 0.5, "b": 0.0}, "seed2": {"a": 0.5, "c": 1.0}}
    found = difference(ones, others, samples=200)
    assert found is not None
    # Query a alone is in both seeds: +.5 and −.5.
    assert (found.mean, found.runs, found.queries) == (0.0, 2, 1)
    assert (found.low, found.high) == (-0.5, 0.5)


def test_pooling_is_over_backends_within_a_query() -> None:
    lexical = {"seed1": {"a": -0.2, "b": 0.0}}
    semantic = {"seed1": {"a": 0.4, "b": 0.2}, "seed2": {"a": 1.0, "b": 1.0}}
    found = pooled([lexical, semantic], samples=200)
    assert found is not None
    assert (found.mean, found.low, found.high) == close((0.1, 0.1, 0.1))
    assert found.runs == 1


def test_a_query_without_a_mean_is_left_out() -> None:
    records = [record("a", "q", 0.5), record("a", "r", None)]
    assert headline([*records, record("b", "q", 1.0)], "a") == {"lexical": {"q": 0.5}}
