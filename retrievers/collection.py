"""A collection: documents, queries and judgements with named splits.

    collection = load("beir", folder="data/scifact")
    collection.document("doc-7").title
    collection.queries("test"), collection.qrels("test"), collection.qrels("test", "graded")

Documents stay in Arrow, so a memory-mapped table of millions of rows costs its ids and little more;
a `Document` is a view of one row.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from retrievers.conventions import Conventions
from retrievers.documents import Document, build_table, checked_table, fingerprint, values, with_ids
from retrievers.identity import EmptyCollectionError, UnknownNameError, Where, index_ids, nfc
from retrievers.identity import row_number as _row_number
from retrievers.leaks import overlaps
from retrievers.qrels import SOURCE, Judgements, Qrels, clean_splits, dangling
from retrievers.queries import Query, by_id

__all__ = ["Collection", "Document", "Query"]

logger = logging.getLogger(__name__)


class Collection:
    """Documents, queries and judgements.

    Args:
        name: for reports.
        documents: Arrow table with the text columns `id` and `text`, usually `title`, in corpus
            order; nulls in `title` and `text` are empty texts; further columns are kept.
        queries: every query of every split. One that no split judges is left out and counted.
        qrels: split → kind → query id → document id → grade. The kind "source" is the main one and
            decides which queries a split holds; further kinds judge queries of the same split.
        left_out: what the loader left out: reason → count.
        where: names the place of a document's row for messages.
        conventions: how results on it are reported.

    Attributes:
        documents: the table, ids in Unicode form NFC.
        ids: document ids in corpus order.
        splits: their names, sorted.
        left_out: reason → count.
        dangling: pairs (query id, document id) that judge a document outside the collection. They
            stay in the qrels, where they count as relevant documents that cannot be found.
        warnings: leaks between splits and other doubts, also logged.

    Raises:
        DuplicateIdError: two ids are equal in form NFC.
        EmptyCollectionError: no document.
        CollectionError: missing columns or ids, a judged query that does not exist.
    """

    def __init__(
        self,
        name: str,
        documents: pa.Table,
        queries: Iterable[Query] = (),
        qrels: Mapping[str, Mapping[str, Judgements]] | None = None,
        *,
        left_out: Mapping[str, int] | None = None,
        where: Where = _row_number,
        conventions: Conventions | None = None,
    ) -> None:
        self.name = name
        self.conventions = conventions or Conventions()
        table = checked_table(documents, name)
        self._positions = index_ids((row[0] for row in values(table, "id")), "document", where)
        if not self._positions:
            raise EmptyCollectionError(f"collection {name!r} has no documents; add at least one")
        self.ids: Sequence[str] = tuple(self._positions)
        self.documents = with_ids(table, self.ids)
        self._queries = by_id(queries)
        self._qrels = clean_splits(qrels or {}, self._queries)
        self.splits = list(self._qrels)
        self.left_out = dict(left_out or {})
        self._leave_out_unjudged()
        judgements = [kind for kinds in self._qrels.values() for kind in kinds.values()]
        self.dangling = dangling(judgements, self._positions)
        self.warnings = list(self._doubts())
        for warning in self.warnings:
            logger.warning("collection %s: %s", name, warning)

    @classmethod
    def from_documents(
        cls, name: str, documents: Iterable[Document], *args: Any, **options: Any
    ) -> "Collection":
        """Build from `Document` objects; further arguments as for the class itself."""
        rows = ({"id": d.id, "title": d.title, "text": d.text} for d in documents)
        return cls(name, build_table(rows), *args, **options)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def __contains__(self, identity: object) -> bool:
        """Whether a document has this id, in whatever Unicode form."""
        return isinstance(identity, str) and nfc(identity) in self._positions

    def __repr__(self) -> str:
        splits = ", ".join(f"{split}: {len(self.queries(split))}" for split in self.splits)
        return f"Collection({self.name!r}, {len(self)} documents, queries {{{splits}}})"

    def position(self, identity: str) -> int:
        """Row of a document, the first is 0. Raises UnknownNameError for an id that is not here."""
        try:
            return self._positions[nfc(identity)]
        except KeyError:
            raise UnknownNameError(
                f"no document {identity!r} in collection {self.name!r} ({len(self)} documents, "
                f"for example {', '.join(map(repr, self.ids[:3]))})"
            ) from None

    def document(self, identity: str) -> Document:
        """One document. Raises UnknownNameError for an id that is not here."""
        row = self.position(identity)
        title, text = (self.documents.column(name)[row].as_py() for name in ("title", "text"))
        return Document(self.ids[row], title or "", text or "")

    def metadata(self, identity: str) -> dict[str, Any]:
        """What else the data says about a document. Raises as `document`."""
        row = self.position(identity)
        if "metadata" not in self.documents.column_names:
            return {}
        text = self.documents.column("metadata")[row].as_py()
        return dict(json.loads(text)) if text else {}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield (title, text) of every document in corpus order, so beside `ids`."""
        for title, text in values(self.documents, "title", "text"):
            yield title or "", text or ""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of ids, titles and texts in corpus order."""
        return fingerprint(self.documents)

    def queries(self, split: str) -> list[Query]:
        """Queries of a split, in the order of its judgements. UnknownNameError lists the splits."""
        return [self._queries[query] for query in self._kinds(split)[SOURCE]]

    def qrels(self, split: str, kind: str = SOURCE) -> Qrels:
        """Judgements of a split (a copy). UnknownNameError lists the splits, or the kinds."""
        kinds = self._kinds(split)
        if kind not in kinds:
            raise UnknownNameError(
                f"split {split!r} of collection {self.name!r} has no qrels of the kind {kind!r}; "
                f"there are: {', '.join(kinds)}"
            )
        return {query: dict(grades) for query, grades in kinds[kind].items()}

    def kinds(self, split: str) -> list[str]:
        """Kinds of judgements in a split, "source" first."""
        return list(self._kinds(split))

    def _kinds(self, split: str) -> dict[str, Qrels]:
        if split not in self._qrels:
            raise UnknownNameError(
                f"collection {self.name!r} has no split {split!r}; "
                f"there are: {', '.join(self.splits) or 'none'}"
            )
        return self._qrels[split]

    def _leave_out_unjudged(self) -> None:
        judged = {query for kinds in self._qrels.values() for query in kinds[SOURCE]}
        kept = {i: query for i, query in self._queries.items() if i in judged}
        if lost := len(self._queries) - len(kept):
            reason = "query without a judgement"
            self.left_out[reason] = self.left_out.get(reason, 0) + lost
        self._queries = kept

    def _doubts(self) -> Iterator[str]:
        yield from overlaps({split: self._qrels[split][SOURCE] for split in self.splits})
        if self.dangling:
            query, document = self.dangling[0]
            yield (
                f"{len(self.dangling)} judgements name a document that is not there, for example "
                f"query {query!r}, document {document!r}"
            )
        lost = [q for q in self._queries.values() if q.source is not None and q.source not in self]
        if lost:
            yield (
                f"{len(lost)} queries have a source document that is not there, for example query "
                f"{lost[0].id!r}, document {lost[0].source!r}"
            )
