"""NDCG@3 by a split's further judgements, such as graded ones of every document that helps."""

from collections.abc import Mapping, Sequence
from math import fsum

from retrievers.collection import Collection
from retrievers.qrels import SOURCE
from rewards.comparison import mean_interval
from rewards.metrics import Grades, Measure
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
                if values := _values(found, judged):
                    mean = mean_interval(values, samples=samples)
                    result[backend][system][f"{kind}_{HEADLINE}"] = mean._asdict()


def _values(records: Sequence[Record], judged: Mapping[str, Grades]) -> list[float]:
    """One a query that counts: of several samples the mean, as for the main judgements."""
    measure = Measure.parse(HEADLINE)
    values = []
    for record in records:
        grades = judged.get(record.query_id, {})
        if not record.failed and any(grade > 0 for grade in grades.values()):
            found = [sample.hits for sample in record.samples]
            rankings = found or [tuple(hit.id for hit in record.hits)]
            values.append(fsum(measure(one, grades) for one in rankings) / len(rankings))
    return values
