"""What a held-out evaluation comes to, and which is the best; failed searches count nowhere."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rewriter.evaluation import HEADLINE, EvaluationError
from rewriter.records import Record, by

Row: TypeAlias = dict[str, Any]  # of evaluations.jsonl


def means(records: list[Record]) -> dict[str, dict[str, float]]:
    """Backend → measure → mean over the queries that count; backends are never averaged."""
    found: dict[str, dict[str, float]] = {}
    for backend, rows in by(records, "backend").items():
        scored = [row.metrics for row in rows if not row.excluded]
        if not scored:
            raise EvaluationError(f"{backend}: every search failed, the last with {rows[-1].error}")
        found[backend] = {key: sum(m[key] for m in scored) / len(scored) for key in scored[0]}
    return found


def per_query(records: Sequence[Record], weights: Mapping[str, float]) -> dict[str, float]:
    """Query id → NDCG@3, weighted over the backends as the reward is.

    Left out are queries without a relevant document, and those whose search failed on a backend:
    what their rewrite is worth nobody knows.

    Args:
        records: of one evaluation.
        weights: backend → weight, not all of them 0.
    """
    total = sum(weights.values())
    return {
        query: sum(weights[row.backend] * row.metrics[HEADLINE] for row in rows) / total
        for query, rows in by(records, "query_id").items()
        if not any(row.excluded for row in rows)
    }


def best_of(history: Sequence[Row]) -> Row | None:
    """The best evaluation; of equal ones the earliest. None where there is none."""
    best: Row | None = None
    for row in history:
        if best is None or is_better(row, best):
            best = row
    return best


def is_better(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether an evaluation is better than an earlier one.

    Where searches failed, the means are of other queries: an evaluation that lost the hard ones
    would look better than it is. Then those queries count that both know.
    """
    values, others = row.get("queries", {}), other.get("queries", {})
    both = values.keys() & others.keys()
    if both and values.keys() != others.keys():
        return bool(sum(values[one] for one in both) > sum(others[one] for one in both))
    return bool(row["score"] > other["score"])
