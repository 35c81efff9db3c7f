"""Rewrites × backends → records: search, judge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import NamedTuple

from retrievers.base import Hit, Retriever
from retrievers.queries import Query
from rewards import metrics
from rewards.metrics import Grades, Measure
from rewards.search.patience import Patience, PatientSearch
from rewriter.records import Record, Rewrite, Sample

HEADLINE = "ndcg@3"  # always computed; what systems are compared and checkpoints chosen by
CUTS = (1, 3, 5, 10)
MEASURES = (
    HEADLINE,
    *(
        f"{name}@{k}"
        for name in ("ndcg", "recall", "mrr")
        for k in CUTS
        if (name, k) != ("ndcg", 3)
    ),
    "mrr",
    "hit@3",
    "hit",
)
DEPTH = 100
FAIL_AT_ONCE = Patience()


class EvaluationError(ValueError):
    """Queries, rewrites or records that do not fit together."""


class _Searched(NamedTuple):
    """What a backend found for every query; None where the search failed for good."""

    hits: list[list[Hit] | None]
    cause: str | None


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
    groups: Mapping[str, Mapping[str, str]] | None = None,
    drop_query_id: bool = False,
    patience: Patience = FAIL_AT_ONCE,
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
        groups: query id → what its record gets as `groups`.
        drop_query_id: leave out a hit whose id is the query's; one more is asked for instead.
        patience: how often a failing search is tried again, and when failures end it all. A query
            whose search failed for good gets a record without metrics and with the cause.

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
        search = PatientSearch(backend, retriever, depth + drop_query_id, patience)
        found = _search(search, queries, texts, depth, drop_query_id)
        values = _judge(queries, found.hits, judged, chosen)
        for query, text, hits in zip(queries, texts, found.hits, strict=True):
            record = Record(
                system=system,
                backend=backend,
                split=split,
                query_id=query.id,
                origin=query.origin,
                query=query.text,
                rewrite=rewrites[query.id].text,
                failure=rewrites[query.id].failure,
                text=text,
                hits=tuple(hits or ()),
                grades=tuple(float(judged[query.id].get(hit.id, 0)) for hit in hits or ()),
                metrics=values[query.id],
                source=query.source,
                groups=dict((groups or {}).get(query.id, {})),
                error=found.cause if hits is None else None,
            )
            records.append(record)
    return records


def evaluate_samples(
    system: str,
    samples: Sequence[Mapping[str, Rewrite]],
    *args: object,
    **options: object,
) -> list[Record]:
    """`evaluate` of several rewrites a query: each record holds all, and the means of metrics.

    Args:
        system: the name its records get.
        samples: for each sample what `evaluate` takes as `rewrites`; one is like `evaluate`.
        args, options: further arguments of `evaluate`.
    """
    drawn = [evaluate(system, made, *args, **options) for made in samples]  # type: ignore[arg-type]
    if len(drawn) == 1:
        return drawn[0]
    return [_together(rows) for rows in zip(*drawn, strict=True)]


def _together(rows: Sequence[Record]) -> Record:
    error = next((row.error for row in rows if row.failed), None)
    keys = [] if error else list(rows[0].metrics)
    return replace(
        rows[0],
        metrics={key: fsum(row.metrics[key] for row in rows) / len(rows) for key in keys},
        error=error,
        samples=tuple(
            Sample(row.rewrite, row.failure, row.text, tuple(h.id for h in row.hits), row.metrics)
            for row in rows
        ),
    )


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


def _search(
    search: PatientSearch, queries: Sequence[Query], texts: Sequence[str], depth: int, drop: bool
) -> _Searched:
    found = search.find(texts)
    hits: list[list[Hit] | None] = []
    for query, text in zip(queries, texts, strict=True):
        some = found[text]
        if some is not None:
            kept = (hit for hit in some if not (drop and hit.id == query.id))
            # A plain float: an engine may give numpy's, which JSON does not know.
            some = [Hit(hit.id, float(hit.score)) for hit in kept][:depth]
        hits.append(some)
    return _Searched(hits, None if search.cause is None else repr(search.cause))


def _judge(
    queries: Sequence[Query],
    hits: Sequence[Sequence[Hit] | None],
    judged: Mapping[str, Grades],
    measures: Sequence[Measure],
) -> dict[str, dict[str, float]]:
    pairs = list(zip(queries, hits, strict=True))
    run = {query.id: [hit.id for hit in found] for query, found in pairs if found is not None}
    searched = {query.id: judged[query.id] for query, found in pairs if found is not None}
    per_query = metrics.evaluate(run, searched, measures).per_query
    values: dict[str, dict[str, float]] = {query.id: {} for query in queries}
    for key, column in per_query.items():
        for query, value in column.items():
            values[query][key] = value
    return values
