"""Systems × backends → records → one result.

    records = evaluate("trained", rewrites, queries, qrels, {"lexical": retriever})
    result = summarise(records_of_every_system)
    write_result(result, folder / "result.json")

Means are over queries and apart for each backend: nothing is averaged over backends.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from retrievers.base import Hit, Retriever
from retrievers.queries import Query
from rewards import metrics
from rewards.comparison import SAMPLES, mean_interval, paired
from rewards.metrics import Grades, Measure
from rewriter.records import Record, Rewrite, by, check_distinct, write_lines

__all__ = ["HEADLINE", "MEASURES", "EvaluationError", "Result", "Rewrite"]
__all__ += ["evaluate", "summarise", "write_result"]

HEADLINE = "ndcg@3"  # always computed; what systems are compared and checkpoints chosen by
MEASURES = (HEADLINE, "mrr@10", "recall@10")
DEPTH = 10

Summary: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, dict[str, Summary]]  # backend → system → summary


class EvaluationError(ValueError):
    """Queries, rewrites or records that do not fit together."""


def _alone(query: str, rewrite: str) -> str:
    return rewrite


def evaluate(
    system: str,
    rewrites: Mapping[str, Rewrite],
    queries: Sequence[Query],
    qrels: Mapping[str, Grades],
    retrievers: Mapping[str, Retriever],
    *,
    measures: Sequence[Measure | str] = MEASURES,
    depth: int = DEPTH,
    split: str = "test",
    render: Callable[[str, str], str] = _alone,
) -> list[Record]:
    """Search with every rewrite in every backend, and judge what comes back.

    Args:
        system: the name its records get.
        rewrites: query id → rewrite, at least for all `queries`. A failed one, and one that leaves
            the query as it is, send the raw query.
        queries: (Q,) what counts; judgements of other queries are not looked at, and a query
            without a relevant document gets a record without metrics.
        qrels: query id → document id → grade.
        retrievers: backend name → where to search; each is asked once, for all texts together.
        measures: "ndcg@3" is added where it is missing.
        depth: hits kept a query, raised to the measures' largest cutoff.
        split: the name its records get.
        render: (query, rewrite) → search text, such as `PromptSettings.search_text`.

    Returns:
        Backend by backend, Q records each in the order of `queries`.

    Raises:
        EvaluationError: no queries or backends, a query twice or without a rewrite.
        retrievers.base.SearchError: a backend failed, which says nothing about the rewrites.
    """
    _check(queries, rewrites, retrievers)
    chosen = _measures(measures)
    depth = max(depth, *(measure.k or 1 for measure in chosen))
    texts = [_text(query, rewrites[query.id], render) for query in queries]
    judged = {query.id: qrels.get(query.id, {}) for query in queries}
    records = []
    for backend, retriever in retrievers.items():
        hits = retriever.search(texts, depth)
        values = _judge(queries, hits, judged, chosen)
        for query, text, found in zip(queries, texts, hits, strict=True):
            where = (system, backend, split)
            made, grades = rewrites[query.id], judged[query.id]
            records.append(_record(where, query, made, text, found, grades, values[query.id]))
    return records


def summarise(
    records: Sequence[Record], baseline: str = "raw", *, samples: int = SAMPLES
) -> Result:
    """Means with 95% intervals, and each system against the baseline on the same queries.

    Records of several origins are averaged together; take `by(records, "origin")` to part them.

    Args:
        records: of one split and run.
        baseline: the system that the others are compared with; no comparison where it is absent.
        samples: bootstrap resamples.

    Returns:
        backend → system → {"ndcg@3": {"mean", "low", "high", "n"}, … for every measure,
        "vs_raw": {"diff", "low", "high", "win", "tie", "loss"} on NDCG@3, "p_vs_raw": the
        randomisation test's p (both not for the baseline itself), "fallbacks": queries sent raw
        because the rewrite failed, "excluded": queries without a relevant document}.

    Raises:
        RecordError: a (system, backend, query) is there twice.
        EvaluationError: no query has a relevant document, or measures differ between records.
        ComparisonError: a system saw other queries than the baseline.
    """
    check_distinct(records)
    result: Result = {}
    for backend, found in by(records, "backend").items():
        systems = by(found, "system")
        columns = {name: _columns(rows) for name, rows in systems.items()}
        result[backend] = {
            name: _means(columns[name], samples)
            | _versus(columns, name, baseline, samples)
            | _counts(rows)
            for name, rows in systems.items()
        }
    return result


def write_result(result: Result, path: Path) -> None:
    """Write `result.json`, whole or not at all."""
    write_lines([json.dumps(result, ensure_ascii=False, allow_nan=False, indent=2)], path)


def _check(
    queries: Sequence[Query], rewrites: Mapping[str, Rewrite], retrievers: Mapping[str, Retriever]
) -> None:
    if not queries or not retrievers:
        raise EvaluationError(
            f"{len(queries)} queries, {len(retrievers)} backends: there must be at least one each"
        )
    ids = [query.id for query in queries]
    if len(set(ids)) < len(ids):
        twice = next(identity for identity in ids if ids.count(identity) > 1)
        raise EvaluationError(f"query {twice!r} is there twice; evaluate each query once")
    missing = [identity for identity in ids if identity not in rewrites]
    if missing:
        raise EvaluationError(
            f"{len(missing)} of {len(ids)} queries have no rewrite, for example {missing[0]!r}; "
            'give Rewrite(None, "reason") where there is none'
        )


def _measures(given: Sequence[Measure | str]) -> list[Measure]:
    parsed = [m if isinstance(m, Measure) else Measure.parse(m) for m in (HEADLINE, *given)]
    return list(dict.fromkeys(parsed))


def _text(query: Query, rewrite: Rewrite, render: Callable[[str, str], str]) -> str:
    # The query is not rendered with itself: "append" would send it twice.
    return query.text if rewrite.text is None else render(query.text, rewrite.text)


def _record(
    where: tuple[str, str, str],
    query: Query,
    made: Rewrite,
    text: str,
    hits: Sequence[Hit],
    grades: Grades,
    values: dict[str, float],
) -> Record:
    system, backend, split = where
    return Record(
        system=system,
        backend=backend,
        split=split,
        query_id=query.id,
        origin=query.origin,
        query=query.text,
        rewrite=made.text,
        failure=made.failure,
        text=text,
        # A plain float: an engine may give numpy's, which JSON does not know.
        hits=tuple(Hit(hit.id, float(hit.score)) for hit in hits),
        grades=tuple(float(grades.get(hit.id, 0)) for hit in hits),
        metrics=values,
    )


def _judge(
    queries: Sequence[Query],
    hits: Sequence[Sequence[Hit]],
    judged: Mapping[str, Grades],
    measures: Sequence[Measure],
) -> dict[str, dict[str, float]]:
    pairs = zip(queries, hits, strict=True)
    run = {query.id: [hit.id for hit in found] for query, found in pairs}
    per_query = metrics.evaluate(run, judged, measures).per_query
    values: dict[str, dict[str, float]] = {query.id: {} for query in queries}
    for key, column in per_query.items():
        for query, value in column.items():
            values[query][key] = value
    return values


def _columns(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Measure → query id → value, of the queries that count."""
    scored = [record for record in records if not record.excluded]
    if not scored:
        raise EvaluationError(
            f"none of {len(records)} queries has a document of grade above 0, so that there is no "
            "mean; check that these are the right qrels"
        )
    keys = list(scored[0].metrics)
    for record in scored:
        if record.metrics.keys() != set(keys) or HEADLINE not in keys:
            raise EvaluationError(
                f"query {record.query_id!r} has {', '.join(record.metrics)}, wanted {HEADLINE} and "
                f"for every query the same as for {scored[0].query_id!r}: {', '.join(keys)}"
            )
    return {key: {record.query_id: record.metrics[key] for record in scored} for key in keys}


def _means(columns: Mapping[str, Mapping[str, float]], samples: int) -> Summary:
    return {
        key: mean_interval(column.values(), samples=samples)._asdict()
        for key, column in columns.items()
    }


def _versus(
    columns: Mapping[str, Mapping[str, Mapping[str, float]]],
    system: str,
    baseline: str,
    samples: int,
) -> Summary:
    if system == baseline or baseline not in columns:
        return {}
    values, others = columns[system][HEADLINE], columns[baseline][HEADLINE]
    found = paired(values, others, samples=samples)._asdict()
    p = found.pop("p")
    del found["n"]  # the same as the measure's own
    return {f"vs_{baseline}": found, f"p_vs_{baseline}": p}


def _counts(records: Sequence[Record]) -> Summary:
    return {
        "fallbacks": sum(record.failure is not None for record in records),
        "excluded": sum(record.excluded for record in records),
    }
