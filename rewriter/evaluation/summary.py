"""Records → means, intervals, comparisons, parts: what `result.json` holds."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any, TypeAlias

from rewards.comparison import SAMPLES, holm, mean_intervals, paired, queries_needed
from rewriter.evaluation.breakdowns import breakdowns, counts
from rewriter.evaluation.judging import HEADLINE, EvaluationError
from rewriter.records import Record, by, check_distinct, write_lines

REGRESSIONS = 10

Summary: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, dict[str, Summary]]  # backend → system → summary
Columns: TypeAlias = Mapping[str, Mapping[str, float]]  # measure → query id → value


def summarise(
    records: Sequence[Record],
    baseline: str | Sequence[str] = "raw",
    *,
    samples: int = SAMPLES,
    primary: str | None = None,
    subset: str | None = None,
) -> Result:
    """Means with 95% intervals, and each system against the baselines on the same queries.

    Args:
        records: of one split and run.
        baseline: the system that the others are compared with, or several; no comparison where one
            is absent.
        samples: bootstrap resamples.
        primary: the collection's own measure, compared and parted like NDCG@3.
        subset: the column that its macro mean is over, parted into however many parts.

    Returns:
        backend → system → {"ndcg@3": {"mean", "low", "high", "n"}, … for every measure,
        "vs_raw": {"diff", "low", "high", "win", "tie", "loss"} on NDCG@3, "p_vs_raw": the
        randomisation test's p, "p_holm_vs_raw": corrected for the number of systems,
        "primary_vs_raw": the same on `primary`, with "measure" and "p", "queries_needed": to see a
        gain of .01 over the first baseline, "regressions": the queries that lost most against it
        (none of these for the baseline itself), "by": see `breakdowns`, "samples" and "spread"
        (standard deviation of the samples' means) where rewrites were sampled, "fallbacks": queries
        sent raw because the rewrite failed, "excluded": queries without a relevant document,
        "failed": queries whose search failed}.

    Raises:
        RecordError: a (system, backend, query) is there twice.
        EvaluationError: no query has a relevant document, or measures differ between records.
        ComparisonError: a system saw other queries than the baseline.
    """
    check_distinct(records)
    baselines = [baseline] if isinstance(baseline, str) else list(dict.fromkeys(baseline))
    compared = [HEADLINE, *([primary] if primary and primary != HEADLINE else [])]
    result: Result = {}
    for backend, found in by(records, "backend").items():
        systems = by(found, "system")
        columns = {name: _columns(rows, compared) for name, rows in systems.items()}
        result[backend] = {}
        for name, rows in systems.items():
            means = _means(columns[name], samples)
            result[backend][name] = means | _spread(rows) | counts(rows)
            result[backend][name]["by"] = breakdowns(rows, compared, samples, means, subset)
        for other in baselines:
            _compare(result[backend], columns, systems, other, samples, compared)
        for name in systems:
            result[backend][name] |= _against(columns, systems, name, baselines[0])
    return result


def write_result(result: Result, path: Path) -> None:
    """Write `result.json`, whole or not at all."""
    write_lines([json.dumps(result, ensure_ascii=False, allow_nan=False, indent=2)], path)


def pair(
    values: Mapping[str, float],
    baseline: Mapping[str, float],
    records: Sequence[Record],
    others: Sequence[Record],
) -> tuple[dict[str, float], dict[str, float]]:
    """The two columns without queries whose search failed for one of the two systems."""
    lost = {record.query_id for record in (*records, *others) if record.failed}
    first, second = (
        {query: value for query, value in column.items() if query not in lost}
        for column in (values, baseline)
    )
    return first, second


def _columns(records: Sequence[Record], needed: Sequence[str]) -> dict[str, dict[str, float]]:
    """Measure → query id → value, of the queries that count."""
    scored = [record for record in records if not record.excluded]
    failed = [record for record in records if record.failed]
    if not scored and failed:
        raise EvaluationError(
            f"system {failed[0].system!r}, backend {failed[0].backend!r}: {len(failed)} of "
            f"{len(records)} searches failed ({failed[0].error}) and no other query counts, so "
            "that there is no mean; see that the backend answers, and evaluate again"
        )
    if not scored:
        raise EvaluationError(
            f"none of {len(records)} queries has a document of grade above 0, so that there is no "
            "mean; check that these are the right qrels"
        )
    keys = list(scored[0].metrics)
    for record in scored:
        if record.metrics.keys() != set(keys) or any(key not in keys for key in needed):
            raise EvaluationError(
                f"query {record.query_id!r} has {', '.join(record.metrics)}, wanted "
                f"{', '.join(needed)} and for every query the same as for {scored[0].query_id!r}: "
                f"{', '.join(keys)}"
            )
    return {key: {record.query_id: record.metrics[key] for record in scored} for key in keys}


def _means(columns: Columns, samples: int) -> Summary:
    lists = {key: list(column.values()) for key, column in columns.items()}
    return {key: one._asdict() for key, one in mean_intervals(lists, samples=samples).items()}


def _spread(records: Sequence[Record]) -> Summary:
    """How far the means of single samples lie apart."""
    sampled = [record.samples for record in records if record.metrics and record.samples]
    if not sampled:
        return {}
    means = [
        sum(one.metrics[HEADLINE] for one in nth) / len(nth) for nth in zip(*sampled, strict=True)
    ]
    return {"samples": len(means), "spread": {HEADLINE: stdev(means)}}


def _compare(
    summaries: dict[str, Summary],
    columns: Mapping[str, Columns],
    systems: Mapping[str, Sequence[Record]],
    baseline: str,
    samples: int,
    measures: Sequence[str],
) -> None:
    """Add each system's comparison with one baseline."""
    if baseline not in columns:
        return
    others = [name for name in systems if name != baseline]
    for name in others:
        for key in measures:
            sides = columns[name][key], columns[baseline][key]
            both = pair(*sides, systems[name], systems[baseline])
            found = paired(*both, samples=samples)._asdict()
            p = found.pop("p")
            if key == HEADLINE:
                del found["n"]  # the same as the measure's own, but for failed searches
                summaries[name] |= {f"vs_{baseline}": found, f"p_vs_{baseline}": p}
            else:
                summaries[name][f"primary_vs_{baseline}"] = {"measure": key, **found, "p": p}
    corrected = holm({name: summaries[name][f"p_vs_{baseline}"] for name in others})
    for name, p in corrected.items():
        summaries[name][f"p_holm_vs_{baseline}"] = p


def _against(
    columns: Mapping[str, Columns],
    systems: Mapping[str, Sequence[Record]],
    name: str,
    baseline: str,
) -> Summary:
    """What one comparison says beyond its mean."""
    if baseline not in columns or name == baseline:
        return {}
    sides = columns[name][HEADLINE], columns[baseline][HEADLINE]
    values, others = pair(*sides, systems[name], systems[baseline])
    losses = sorted((values[query] - others[query], query) for query in values)
    return {
        "queries_needed": queries_needed(values, others),
        "regressions": [
            {"query_id": query, "diff": diff, "value": values[query], "baseline": others[query]}
            for diff, query in losses[:REGRESSIONS]
            if diff < 0
        ],
    }
