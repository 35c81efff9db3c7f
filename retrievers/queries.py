"""Queries: what is asked, by whom, and what is known about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrievers.identity import CollectionError, index_ids, nfc

ORIGINS = ("human", "synthetic")


@dataclass(frozen=True, slots=True)
class Query:
    """One query. Raises CollectionError where `origin` is not one of `ORIGINS`.

    origin: "human" or "synthetic". source: id of the document that a synthetic query was written
    from. reference: a person's rewrite. metadata: whatever else the data says about the query.
    """

    id: str
    text: str
    origin: str = "human"
    source: str | None = None
    reference: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise CollectionError(
                f"query {self.id!r}: origin {self.origin!r} is none of {', '.join(ORIGINS)}; "
                f"correct it, or give another name to a field with another meaning"
            )


def unique(found: Iterable[tuple[str, Query]]) -> list[Query]:
    """Queries that come with their places. Raises DuplicateIdError, which names both places."""
    rows = list(found)
    index_ids((query.id for _, query in rows), "query", lambda row: rows[row][0])
    return [query for _, query in rows]


def by_id(queries: Iterable[Query]) -> dict[str, Query]:
    """Queries by id, ids in form NFC. Raises DuplicateIdError."""
    rows = list(queries)
    index_ids((query.id for query in rows), "query")
    normalised = (replace(q, id=nfc(q.id), source=q.source and nfc(q.source)) for q in rows)
    return {query.id: query for query in normalised}
