"""Records that say little: for tests of what is computed from many of them."""

from collections.abc import Sequence

from retrievers.base import Hit
from rewriter.records import Record

HITS = tuple(f"d{n}" for n in range(20))


def record(
    system: str,
    query: str,
    ndcg: float | None,
    hits: Sequence[str] = HITS,
    backend: str = "lexical",
) -> Record:
    """A query sent as it is, and hits of which none is judged.

    ndcg: its NDCG@3; None: it has no mean.
    """
    return Record(
        system=system,
        backend=backend,
        split="test",
        query_id=query,
        origin="human",
        query=query,
        rewrite=None,
        failure=None,
        text=query,
        hits=tuple(Hit(identity, 1.0) for identity in hits),
        grades=(0.0,) * len(hits),
        metrics={} if ndcg is None else {"ndcg@3": ndcg},
    )
