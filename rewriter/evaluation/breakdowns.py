"""Means of parts of the queries: by origin, by languages, by any column of their metadata."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any

from rewards.comparison import mean_intervals
from rewriter.records import Record

ORIGIN = "origin"
MOST = 30  # parts that a table can show; a column with more tells queries apart, not kinds of them
RESAMPLES = 2_000  # at most, behind the intervals of a part

Breakdown = dict[str, Any]


def breakdowns(
    records: Sequence[Record],
    measures: Sequence[str],
    samples: int,
    means: Mapping[str, Any],
    subset: str | None = None,
) -> dict[str, Breakdown]:
    """Column → {"groups": part → means, "macro", "micro"}.

    Args:
        records: of one system and backend.
        measures: to average.
        samples: bootstrap resamples.
        means: measure → interval over all records, which is that of a column with one part too.
        subset: the column that the collection's own mean is over, never left out.

    Returns:
        A part has an interval for each measure and the counts "queries", "excluded", "failed" and
        "fallbacks"; one without a query that counts has the counts only. "macro" is the mean of the
        parts' means, "micro" that over all queries that have the column. Other columns
        with more than 30 parts are left out.
    """
    found = {}
    for column in _columns(records):
        parts = _parts(records, column)
        if parts and (len(parts) <= MOST or column == subset):
            found[column] = _breakdown(parts, measures, samples, means, len(records))
    return found


def counts(records: Sequence[Record]) -> dict[str, int]:
    """Queries that stand behind no mean, and rewrites that failed."""
    failed = sum(record.failed for record in records)
    return {
        "fallbacks": sum(record.fallbacks for record in records),
        "excluded": sum(record.excluded for record in records) - failed,
        "failed": failed,
    }


def _columns(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys([ORIGIN, *(name for record in records for name in record.groups)]))


def _parts(records: Sequence[Record], column: str) -> dict[str, list[Record]]:
    parts: dict[str, list[Record]] = {}
    for record in records:
        value = record.origin if column == ORIGIN else record.groups.get(column)
        if value is not None:
            parts.setdefault(value, []).append(record)
    return dict(sorted(parts.items()))


def _breakdown(
    parts: Mapping[str, Sequence[Record]],
    measures: Sequence[str],
    samples: int,
    means: Mapping[str, Any],
    n: int,
) -> Breakdown:
    def part(rows: Sequence[Record]) -> dict[str, Any]:
        if len(rows) == n:  # the only part: what is known need not be drawn again
            return {key: means[key] for key in measures if key in means}
        return dict(_means(rows, measures, samples))

    groups = {
        value: {"queries": len(rows)} | counts(rows) | part(rows) for value, rows in parts.items()
    }
    averages = {
        key: [group[key]["mean"] for group in groups.values() if key in group] for key in measures
    }
    return {
        "groups": groups,
        "macro": {key: fsum(some) / len(some) for key, some in averages.items() if some},
        "micro": {
            key: fsum(values) / len(values)
            for key in measures
            if (values := [r.metrics[key] for rows in parts.values() for r in rows if r.metrics])
        },
    }


def _means(
    records: Sequence[Record], measures: Sequence[str], samples: int
) -> Iterator[tuple[str, dict[str, float]]]:
    scored = [record.metrics for record in records if record.metrics]
    if scored:
        columns = {key: [values[key] for values in scored] for key in measures}
        for key, found in mean_intervals(columns, samples=min(samples, RESAMPLES)).items():
            yield key, found._asdict()
