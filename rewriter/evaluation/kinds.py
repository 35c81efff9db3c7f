"""NDCG@3 by a split's further judgements, such as graded ones of every document that helps."""

from collections.abc import Sequence

from retrievers.collection import Collection
from retrievers.qrels import SOURCE
from rewards.comparison import mean_interval
from rewards.metrics import evaluate
from rewriter.evaluation.judging import HEADLINE
from rewriter.evaluation.summary import Result
from rewriter.records import Record, by


def add_kinds(
    result: Result, collection: Collection, split: str, records: Sequence[Record], samples: int
) -> None:
    """Add "KIND_ndcg@3" for every kind of judgements of the split but its main one.

    Queries that a kind does not judge, or whose search failed, do not count there.
    """
    for kind in collection.kinds(split):
        if kind == SOURCE:
            continue
        judged = collection.qrels(split, kind)
        for backend, rows in by(records, "backend").items():
            for system, found in by(rows, "system").items():
                run = {
                    row.query_id: [hit.id for hit in row.hits] for row in found if not row.failed
                }
                qrels = {query: grades for query, grades in judged.items() if query in run}
                values = evaluate(run, qrels, [HEADLINE]).per_query[HEADLINE].values()
                if values:
                    mean = mean_interval(values, samples=samples)
                    result[backend][system][f"{kind}_{HEADLINE}"] = mean._asdict()
