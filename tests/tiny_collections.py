"""Collections of a few words in memory, and an id in both Unicode forms."""

from collections.abc import Mapping

from retrievers.collection import Collection, Document, Query

NFC, NFD = "caf\u00e9", "cafe\u0301"


def toy(
    texts: Mapping[str, str], qrels: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None
) -> Collection:
    """Documents with these texts, and a query for every id that a split judges."""
    queries = dict.fromkeys(query for judged in (qrels or {}).values() for query in judged)
    return Collection.from_documents(
        "toy",
        [Document(identity, "", text) for identity, text in texts.items()],
        [Query(query, "?") for query in queries],
        {split: {"source": judged} for split, judged in (qrels or {}).items()},
    )
