"""A backend as mteb's `SearchProtocol`, so that mteb's own evaluator runs on it.

    task.evaluate(MtebSearch(LexicalRetriever(collection)), "test", encode_kwargs={})

The backend has its index already: the corpus that mteb hands over is only compared with it.
mteb orders by score, ties by document id; scores are −rank, so that it sees our one ranking.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from retrievers.base import Retriever, import_extra
from retrievers.identity import CollectionError


class MtebSearch:
    """What mteb asks for: `index`, `search` and `mteb_model_meta`.

    Args:
        retriever: the backend.
        ids: ids of the documents that it searches.
        name: under which mteb reports it, as "organisation/name".
    """

    def __init__(self, retriever: Retriever, ids: Iterable[str], name: str = "") -> None:
        self._retriever = retriever
        self._ids = set(ids)
        self._name = name or f"rlqr/{retriever.backend}"

    def index(self, corpus: Iterable[Mapping[str, Any]], **_: Any) -> None:
        """Compare mteb's documents with the backend's.

        Raises:
            CollectionError: they are not the same ones.
        """
        given = {str(row["id"]) for row in corpus}
        if given != self._ids:
            odd = sorted(given ^ self._ids)
            raise CollectionError(
                f"mteb's corpus has {len(given)} documents, the backend {len(self._ids)}; "
                f"{odd[0]!r} is in one of them only; load the same collection for both"
            )

    def search(
        self, queries: Iterable[Mapping[str, Any]], *, top_k: int, **_: Any
    ) -> dict[str, dict[str, float]]:
        """Query id → document id → −rank, of the first `top_k`."""
        rows = [(str(row["id"]), str(row["text"])) for row in queries]
        found = self._retriever.search([text for _, text in rows], top_k)
        return {
            query: {
                document: -float(rank)
                for rank, document in enumerate(dict.fromkeys(hit.id for hit in hits), 1)
            }
            for (query, _), hits in zip(rows, found, strict=True)
        }

    @property
    def mteb_model_meta(self) -> Any:
        """How mteb names the backend in its files."""
        import_extra("mteb", "dev")
        from mteb.models.model_meta import ModelMeta

        given = {"name": self._name, "revision": self._retriever.fingerprint}
        return ModelMeta.create_empty(given)
