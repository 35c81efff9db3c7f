"""Which queries a rewriter changed most, and which documents one wants to see of them."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rewriter.evaluation.judging import HEADLINE
from rewriter.records import Record, by

Key = TypeVar("Key")


def changes(records: Sequence[Record], baseline: str | None) -> dict[str, float]:
    """Query id → its largest change of NDCG@3 against the baseline, up or down.

    Over all systems and backends; 0 for a query without a pair that counts. Queries are in order of
    appearance.
    """
    largest = dict.fromkeys((record.query_id for record in records), 0.0)
    for rows in by(records, "backend").values():
        scored = [(row.query_id, row) for row in rows if row.metrics]
        before = {query: row.metrics[HEADLINE] for query, row in scored if row.system == baseline}
        for query, row in scored:
            if query in before:
                change = abs(row.metrics[HEADLINE] - before[query])
                largest[query] = max(largest[query], change)
    return largest


def by_change(records: Sequence[Record], baseline: str | None) -> list[str]:
    """Query ids, the largest change first; of equal ones the earlier first."""
    sizes = changes(records, baseline)
    return sorted(sizes, key=lambda query: -sizes[query])


def in_sight(judged: Iterable[Key], lists: Sequence[Sequence[Key]]) -> list[Key]:
    """Judged documents, then all first hits, all second ones, and so on; each once."""
    depth = max(map(len, lists), default=0)
    ranked = [row[rank] for rank in range(depth) for row in lists if rank < len(row)]
    return list(dict.fromkeys([*judged, *ranked]))
