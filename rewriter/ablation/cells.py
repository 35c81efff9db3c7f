"""Evaluations → means with intervals over seeds and queries.

A cell pools the runs of one combination of levels. Its values are a table, runs × queries, and its
interval is a bootstrap over both: runs and queries are drawn anew, each on its own, so that what
one lucky seed or one easy query does is in it. With one run it is an interval over queries alone.
Two cells are compared by the differences of runs that are alike in everything else, query by query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewards.comparison import LEVEL, SAMPLES
from rewriter.evaluation.judging import HEADLINE
from rewriter.records import Record

Values = Mapping[str, float]  # query id → NDCG@3
Table = NDArray[np.float64]  # (runs, queries)

_CHUNK = 1_000_000  # numbers drawn at once


@dataclass(frozen=True)
class Evaluated:
    """One evaluated system.

    Attributes:
        name: of its run, or of the system where it is not trained.
        at: axis → level; empty where it is not trained.
        values: backend → query id → NDCG@3.
    """

    name: str
    at: Mapping[str, str]
    values: Mapping[str, Values]


class Mean(NamedTuple):
    """A mean, or a mean difference, and its 95% interval; of so many runs and queries."""

    mean: float
    low: float
    high: float
    runs: int
    queries: int


def headline(records: Sequence[Record], system: str) -> dict[str, dict[str, float]]:
    """Backend → query id → NDCG@3 of one system; queries without a mean are left out."""
    found: dict[str, dict[str, float]] = {}
    for record in records:
        if record.system == system and not record.excluded:
            found.setdefault(record.backend, {})[record.query_id] = record.metrics[HEADLINE]
    return found


def mean_of(columns: Sequence[Values], *, samples: int = SAMPLES, seed: int = 0) -> Mean | None:
    """The mean over runs and queries; None without a run, or without a query that all have.

    Args:
        columns: one a run.
        samples: resamples.
        seed: of the draws.
    """
    if not columns:
        return None
    queries = sorted(set.intersection(*(set(column) for column in columns)))
    if not queries:
        return None
    table = np.array([[column[query] for query in queries] for column in columns])
    low, high = _interval(table, samples, seed)
    mean = fsum(table.ravel()) / table.size
    # Rounding may put the mean of equal values a hair outside of their interval.
    return Mean(mean, min(low, mean), max(high, mean), *table.shape)


def difference(
    ones: Mapping[str, Values], others: Mapping[str, Values], *, samples: int = SAMPLES
) -> Mean | None:
    """Mean difference of the runs that both have, paired by run and query.

    Args:
        ones, others: what a run is besides the level that is compared → its values.
        samples: resamples.
    """
    return mean_of(list(less(ones, others).values()), samples=samples)


def pooled(differences: Sequence[Mapping[str, Values]], *, samples: int = SAMPLES) -> Mean | None:
    """The mean over backends of what `difference` takes apart for each of them.

    Args:
        differences: a backend each: run → query id → difference.
    """
    if not differences:
        return None
    runs = [run for run in differences[0] if all(run in one for one in differences)]
    columns = []
    for run in runs:
        parts = [one[run] for one in differences]
        queries = set.intersection(*(set(part) for part in parts))
        columns.append(
            {query: fsum(part[query] for part in parts) / len(parts) for query in queries}
        )
    return mean_of(columns, samples=samples)


def less(ones: Mapping[str, Values], others: Mapping[str, Values]) -> dict[str, Values]:
    """Run → query id → difference, of the runs that both have."""
    return {run: _less(ones[run], others[run]) for run in ones if run in others}


def _less(one: Values, other: Values) -> Values:
    return {query: value - other[query] for query, value in one.items() if query in other}


def _interval(table: Table, samples: int, seed: int) -> tuple[float, float]:
    runs, queries = table.shape
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // (runs + queries))
    means = []
    for start in range(0, samples, step):
        size = min(step, samples - start)
        by_run = rng.multinomial(runs, [1 / runs] * runs, size=size)
        by_query = rng.multinomial(queries, [1 / queries] * queries, size=size)
        drawn = np.einsum(
            "sq,sq->s", by_run.astype(np.float64) @ table, by_query.astype(np.float64)
        )
        means.append(drawn / table.size)
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
