"""What an engine of one's own answers → hits of the collection."""

import logging
from collections.abc import Iterable, Mapping
from math import isfinite
from numbers import Integral
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retrievers.base import Documents, Hit, PermanentSearchError
from retrievers.identity import index_ids, nfc

logger = logging.getLogger(__name__)

PROBE_HITS = 3
PROBE_WORDS = 8


class EngineSettings(BaseModel):
    """What all engines of one's own share.

    Attributes:
        version: a text that names the state of the engine's index, such as its date. Another one
            makes it another engine: the engine cannot be asked what it holds.
        depth: hits to ask for at least; the first of them are kept. For engines that may find
            several passages of one document: a document stands where its best passage does.
        unknown: hits that are no document of the collection: "keep" leaves them their ranks, as
            the engine's users see it, "drop" closes the gap. They are counted in either case.
        probe: search once at the start, so that a slip shows before a model is loaded.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    version: str | None = None
    depth: int = Field(default=1, ge=1)
    unknown: Literal["keep", "drop"] = "keep"
    probe: bool = True


class Answers:
    """Makes hits of an engine's answers, in the engine's own order.

    Args:
        backend: named in messages.
        collection: whose ids are known; compared in Unicode form NFC.
        drop: leave out hits that are no document of the collection.

    Attributes:
        hits: number of hits seen so far; unknown: how many of them are no document of the
            collection.

    Raises:
        retrievers.identity.CollectionError: two ids of the collection are one.
    """

    def __init__(self, backend: str, collection: Documents, drop: bool) -> None:
        self.backend = backend
        self.hits = self.unknown = 0
        self._ids = collection.ids
        self._rows = index_ids(collection.ids, "document")
        self._drop = drop
        self._example, self._reported = "", 0

    def read(self, found: Iterable[tuple[Any, Any]]) -> list[Hit]:
        """Hits of one query.

        Args:
            found: (id, score) pairs, best first; whole numbers are ids too, a score may be None.

        Returns:
            One hit a document, where it first appears. Scores are the engine's; −1, −2, … by rank
            where one of them is missing.

        Raises:
            PermanentSearchError: an id or a score cannot be one.
        """
        scores: dict[str, float | None] = {}
        for identity, score in found:
            known = self._known(self._text(identity))
            if known is not None:
                scores.setdefault(known, self._number(score))
        if None in scores.values():
            return [Hit(identity, -float(rank)) for rank, identity in enumerate(scores, start=1)]
        return [Hit(identity, score) for identity, score in scores.items() if score is not None]

    def report(self) -> None:
        """Warn of unknown ids: at the first of them, and whenever there are ten times as many."""
        if self.unknown and self.unknown >= 10 * self._reported:
            logger.warning(
                "%s: %d of the %d hits so far are no document of the collection, such as %r; the "
                "collection's ids look like %r",
                *(self.backend, self.unknown, self.hits, self._example, self._ids[0]),
            )
            self._reported = self.unknown

    def _known(self, identity: str) -> str | None:
        self.hits += 1
        row = self._rows.get(nfc(identity))
        if row is not None:
            return self._ids[row]
        self.unknown += 1
        self._example = identity
        return None if self._drop else identity

    def _text(self, identity: Any) -> str:
        if isinstance(identity, str) and identity:
            return str(identity)  # numpy's texts become plain ones
        if isinstance(identity, Integral) and not isinstance(identity, bool):
            return str(int(identity))
        raise PermanentSearchError(
            f"{self.backend}: a hit has the id {identity!r:.80}; ids are texts or whole numbers"
        )

    def _number(self, score: Any) -> float | None:
        if score is None:
            return None
        try:
            number = float(score)
        except (TypeError, ValueError):
            number = float("nan")
        if not isfinite(number):
            raise PermanentSearchError(
                f"{self.backend}: a hit has the score {score!r:.80}; scores are finite numbers, or "
                "left out"
            )
        return number


def as_pair(hit: Any) -> tuple[Any, Any]:
    """(id, score) of a hit in any of the usual forms; the score is None where there is none.

    Read are plain ids, (id, score), {"id": …, "score": …}, and objects with `id` and `score`.

    Raises:
        PermanentSearchError: it is none of these.
    """
    if isinstance(hit, str | Integral):
        return hit, None
    if isinstance(hit, Mapping) and "id" in hit:
        return hit["id"], hit.get("score")
    if hasattr(hit, "id"):
        return hit.id, getattr(hit, "score", None)
    if isinstance(hit, tuple | list) and len(hit) == 2:
        return hit[0], hit[1]
    raise PermanentSearchError(
        f"a hit is {hit!r:.80}; give an id, (id, score), a dict with 'id' and 'score', or an "
        "object with these attributes"
    )


def probe_texts(collection: Documents) -> list[str]:
    """Two different texts to try an engine with: a document's first words, and its first word.

    Two, so that a list of lists can be told from one list.
    """
    for title, text in collection.texts():
        words = f"{title} {text}".split()[:PROBE_WORDS]
        if len(words) > 1:
            return [" ".join(words), words[0]]
    return ["probe one", "probe"]
