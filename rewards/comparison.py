"""How sure a mean is, and how sure the difference of two: over queries, never over backends.

Intervals are percentile bootstraps over queries (Efron, 1979); two systems are compared on the same
queries, so by the differences per query (Sakai, SIGIR 2006). The p-value is that of Fisher's
randomisation test, which Smucker, Allan and Carterette (CIKM 2007) recommend for retrieval.

Where several systems are compared with one, p-values are corrected by Holm (1979).

Every result depends on the values and the seed alone, not on the order of the queries.
"""

from collections.abc import Collection, Iterator, Mapping
from math import ceil, fsum
from statistics import NormalDist
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
POWER = 0.8
SAMPLES = 10_000
# Differences up to here are ties: no measure moves by so little, but rounding may.
TIE = 1e-9
_CHUNK = 1_000_000  # numbers drawn at once, so that memory stays at some tens of megabytes

Values: TypeAlias = NDArray[np.float64]
Key = TypeVar("Key")


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
    return mean_intervals({"": values}, samples=samples, seed=seed)[""]


def mean_intervals(
    columns: Mapping[Key, Collection[float]], *, samples: int = SAMPLES, seed: int = 0
) -> dict[Key, Interval]:
    """`mean_interval` of several columns; those of one length share their resamples, and the work.

    Args:
        columns: name → (n,) values; n may differ between columns.
        samples, seed: as for `mean_interval`.

    Raises:
        ComparisonError: as for `mean_interval`.
    """
    arrays = {key: _checked(values, samples) for key, values in columns.items()}
    found: dict[Key, Interval] = {}
    for n in {len(array) for array in arrays.values()}:
        alike = [key for key, array in arrays.items() if len(array) == n]
        values = np.stack([arrays[key] for key in alike], axis=1)
        rng = np.random.default_rng(seed)
        means = np.concatenate([_resampled(values, size, rng) for size in _sizes(samples, n)])
        ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        for key, (low, high) in zip(alike, ends.T.tolist(), strict=True):
            mean = fsum(arrays[key]) / n
            # Rounding may put the mean of equal values a hair outside of their interval.
            found[key] = Interval(mean, min(low, mean), max(high, mean), n)
    return {key: found[key] for key in arrays}


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


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """P-values corrected for how many there are (Holm, 1979): controls the chance of any error.

    The smallest of m is multiplied by m, the next by m − 1, and so on; none falls below the one
    before it, and none is above 1.
    """
    corrected: dict[Key, float] = {}
    highest = 0.0
    ascending = sorted(p_values, key=lambda key: p_values[key])
    for left, key in zip(range(len(ascending), 0, -1), ascending, strict=True):
        highest = max(highest, min(1.0, left * p_values[key]))
        corrected[key] = highest
    return {key: corrected[key] for key in p_values}


def queries_needed(
    values: Mapping[str, float],
    baseline: Mapping[str, float],
    gain: float = 0.01,
    power: float = POWER,
) -> int | None:
    """Queries with which a mean difference of `gain` would be seen, at the 95% level.

    n = ((z(.975) + z(power)) · s / gain)², s being the standard deviation of the differences per
    query that were measured (normal approximation, as Sakai, SIGIR 2016). For a difference that
    nobody has seen yet it is a guess from this one.

    Returns:
        At least 2; None where no query differs, which says nothing about the spread.

    Raises:
        ComparisonError: the queries differ, or a value is not a finite number.
    """
    _check_same_queries(values, baseline)
    differences = _checked([value - baseline[query] for query, value in values.items()], 1)
    spread = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    if spread <= TIE:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(power)
    return max(2, ceil((reach * spread / gain) ** 2))


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
    """(size, m) means of resamples of (n, m) values, the same queries for every column."""
    n = len(values)
    drawn = rng.integers(0, n, size=(size, n), dtype=np.int32)
    # How often each value was drawn: a product with these is far cheaper than gathering a column
    # at a time.
    drawn += np.arange(0, size * n, n, dtype=np.int32)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
    means: Values = counts.astype(np.float64) @ values / n
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
