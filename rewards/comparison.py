"""How sure a mean is, and how sure the difference of two: over queries, never over backends.

Intervals are percentile bootstraps over queries (Efron, 1979); two systems are compared on the same
queries, so by the differences per query (Sakai, SIGIR 2006). The p-value is that of Fisher's
randomisation test, which Smucker, Allan and Carterette (CIKM 2007) recommend for retrieval.

Every result depends on the values and the seed alone, not on the order of the queries.
"""

from collections.abc import Collection, Iterator, Mapping
from math import fsum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
SAMPLES = 10_000
# Differences up to here are ties: no measure moves by so little, but rounding may.
TIE = 1e-9
_CHUNK = 1_000_000  # numbers drawn at once, so that memory stays at some tens of megabytes

Values: TypeAlias = NDArray[np.float64]


class ComparisonError(ValueError):
    """Values that cannot be averaged or compared."""


class Interval(NamedTuple):
    """A mean over n queries and its 95% interval, all in the measure's unit."""

    mean: float
    low: float
    high: float
    n: int


class Paired(NamedTuple):
    """A system against a baseline on the same n queries.

    diff: mean difference, positive where the system is better; low, high: its 95% interval.
    win, tie, loss: queries on which the system is better, equal, worse; they sum to n.
    p: two-sided probability of a difference this large if the two were the same.
    """

    diff: float
    low: float
    high: float
    win: int
    tie: int
    loss: int
    n: int
    p: float


def mean_interval(values: Collection[float], *, samples: int = SAMPLES, seed: int = 0) -> Interval:
    """Mean and 95% percentile bootstrap interval.

    With few queries the interval is too narrow; with one it is the value itself.

    Args:
        values: (n,) one value a query.
        samples: resamples drawn.
        seed: of the draws.

    Raises:
        ComparisonError: no values, one that is not a finite number, or `samples` below 1.
    """
    array = _checked(values, samples)
    mean = fsum(array) / len(array)
    rng = np.random.default_rng(seed)
    means = np.concatenate([_resampled(array, size, rng) for size in _sizes(samples, len(array))])
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    # Rounding may put the mean of equal values a hair outside of their interval.
    return Interval(mean, min(low, mean), max(high, mean), len(array))


def paired(
    values: Mapping[str, float],
    baseline: Mapping[str, float],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Paired:
    """Compare a system with a baseline, query by query.

    Args:
        values, baseline: query id → value; the same queries, in any order.
        samples: resamples drawn for the interval, and sign flips for p; where there are no more
            ways to flip than that, all of them are tried and p is exact.
        seed: of the draws.

    Raises:
        ComparisonError: the queries differ, and as for `mean_interval`.
    """
    _check_same_queries(values, baseline)
    differences = [value - baseline[query] for query, value in values.items()]
    interval = mean_interval(differences, samples=samples, seed=seed)
    win = sum(d > TIE for d in differences)
    loss = sum(d < -TIE for d in differences)
    tie = interval.n - win - loss
    p = _sign_flip(_checked(differences, samples), samples, np.random.default_rng(seed))
    return Paired(*interval[:3], win, tie, loss, interval.n, p)


def _checked(values: Collection[float], samples: int) -> Values:
    if samples < 1:
        raise ComparisonError(f"samples is {samples}; it must be at least 1 (usual: {SAMPLES})")
    # Sorted, so that the same draws meet the same values in whatever order the queries came.
    array = np.sort(np.fromiter(values, dtype=np.float64, count=len(values)))
    if not len(array):
        raise ComparisonError(
            "no values: there must be at least one query with a relevant document"
        )
    if not np.isfinite(array).all():
        raise ComparisonError("a value is not a finite number; look for NaN where it was computed")
    return array


def _check_same_queries(values: Mapping[str, float], baseline: Mapping[str, float]) -> None:
    if values.keys() == baseline.keys():
        return
    extra = [query for query in values if query not in baseline]
    missing = [query for query in baseline if query not in values]
    raise ComparisonError(
        "only values of the same queries can be paired: "
        f"{len(extra)} are not in the baseline{_some(extra)}, "
        f"{len(missing)} are in the baseline only{_some(missing)}; evaluate both on one split"
    )


def _some(queries: list[str]) -> str:
    shown = ", ".join(map(repr, queries[:3])) + (", …" if len(queries) > 3 else "")
    return f" ({shown})" if queries else ""


def _sizes(total: int, width: int) -> Iterator[int]:
    """Parts of `total` rows of `width` numbers, each at most a chunk (or one row)."""
    step = max(1, _CHUNK // width)
    for start in range(0, total, step):
        yield min(step, total - start)


def _resampled(values: Values, size: int, rng: np.random.Generator) -> Values:
    drawn = rng.integers(0, len(values), size=(size, len(values)), dtype=np.int32)
    means: Values = values[drawn].mean(axis=1)
    return means


def _sign_flip(differences: Values, samples: int, rng: np.random.Generator) -> float:
    # A tie is the same with either sign: leaving ties out changes nothing but the work.
    moved = differences[np.abs(differences) > TIE]
    if not len(moved):
        return 1.0
    exact = 2 ** len(moved) <= samples
    # The margin keeps flips that only rounding sets apart from what was observed.
    observed = abs(fsum(moved)) - 1e-12 * fsum(np.abs(moved))
    drawn = _all_signs(len(moved)) if exact else _random_signs(len(moved), samples, rng)
    extreme = sum(int((np.abs(signs @ moved) >= observed).sum()) for signs in drawn)
    # What was observed is one of the flips: counted in, so that p is never 0.
    return extreme / 2 ** len(moved) if exact else (extreme + 1) / (samples + 1)


def _all_signs(width: int) -> Iterator[Values]:
    start = 0
    for size in _sizes(2**width, width):
        numbers = np.arange(start, start + size)[:, None]
        yield np.where((numbers >> np.arange(width)) & 1, 1.0, -1.0)
        start += size


def _random_signs(width: int, samples: int, rng: np.random.Generator) -> Iterator[Values]:
    for size in _sizes(samples, width):
        yield np.where(rng.integers(0, 2, size=(size, width), dtype=np.int8), 1.0, -1.0)
