"""Long texts → overlapping pieces of a fixed number of words or tokens, and hits on pieces.

Backends that cut the documents of one collection alike have the same `chunks`; their rankings of
pieces can then be fused (`retrievers.hybrid`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retrievers.analysis import HAN_AND_KANA
from retrievers.base import Documents
from retrievers.index import fingerprint

Offsets = Sequence[tuple[int, int]]
# Where no spaces part words, each character is one.
_WORD = re.compile(rf"[{HAN_AND_KANA}]|[^\s{HAN_AND_KANA}]+")


class ChunkHit(NamedTuple):
    """A piece of a document that was found.

    Attributes:
        id: of the document.
        number: of the piece in its document, the first is 0.
        score: higher is better.
    """

    id: str
    number: int
    score: float


@runtime_checkable
class SearchesChunks(Protocol):
    """A backend that can say which pieces of the documents it finds.

    Attributes:
        chunks: equal in two backends whose pieces are the same; None: it does not cut documents.
    """

    chunks: str | None

    def search_chunks(self, queries: Sequence[str], k: int) -> list[list[ChunkHit]]:
        """The best k pieces of each of distinct, non-blank queries, best first."""


def joined(title: str, text: str) -> str:
    """What is cut, or encoded, of a document: title, line break, text; without blank parts."""
    return readable("\n".join(part for part in (title, text) if part.strip()))


def readable(text: str) -> str:
    """The text with "?" for halves of surrogate pairs, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def words(text: str) -> Offsets:
    """(start, end) of what stands between spaces; Chinese and Japanese characters stand alone."""
    return [match.span() for match in _WORD.finditer(text)]


class Chunker:
    """Callable: text → its pieces in order.

    Args:
        offsets: text → (start, end) in characters of each of its words or tokens.
        size: words or tokens of a piece, the last one may have fewer.
        overlap: of them that a piece shares with the one before it.
    """

    def __init__(self, offsets: Callable[[str], Offsets], size: int, overlap: int) -> None:
        self._offsets = offsets
        self._size = size
        self._step = size - overlap

    def __call__(self, text: str) -> list[str]:
        pieces = [text[start:end] for start, end in self._spans(self._offsets(text))]
        # A text whose characters the tokenizer drops altogether is still a document.
        return [piece for piece in pieces if piece.strip()] or [text]

    def _spans(self, offsets: Offsets) -> Iterator[tuple[int, int]]:
        for first in range(0, len(offsets), self._step):
            last = min(first + self._size, len(offsets))
            yield offsets[first][0], offsets[last - 1][1]
            if last == len(offsets):  # what follows would only repeat the end
                return


def check_sizes(name: str, size: int | None, overlap: int) -> None:
    """Refuse settings of a `Chunker` that mean nothing.

    Args:
        name: of the setting that holds `size`.
        size: None where texts are not cut.
        overlap: of pieces.

    Raises:
        ValueError: an overlap without pieces, or as large as they are.
    """
    if size is None and overlap:
        raise ValueError(f"chunk_overlap needs {name}: give that too")
    if size is not None and overlap >= size:
        raise ValueError(
            f"chunk_overlap is {overlap}, {name} {size}: pieces cannot share all they have"
        )


def identity(documents: Documents, unit: str, size: int, overlap: int) -> str:
    """The `chunks` of a backend. unit: what `size` counts; "words" are those of `words`."""
    return fingerprint(
        {"documents": documents.fingerprint, "unit": unit, "size": size, "overlap": overlap}
    )


def by_document(
    owners: NDArray[np.int32], scores: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Documents, ascending, and the score of each one's best piece.

    Args:
        owners: (n,) position of the document of each piece, never falling.
        scores: (n,) of the pieces.
    """
    if not len(owners):
        return owners.astype(np.intp), scores
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    return owners[first].astype(np.intp), np.maximum.reduceat(scores, first)


def chunk_hits(
    ids: Sequence[str],
    owners: NDArray[np.int32],
    rows: NDArray[np.intp],
    scores: NDArray[np.float64],
) -> list[ChunkHit]:
    """Pieces as hits.

    Args:
        ids: of the documents.
        owners: (R,) position of the document of each piece of the collection, never falling.
        rows: (n,) the pieces that were found, best first.
        scores: (n,) theirs.
    """
    documents = owners[rows]
    numbers = rows - np.searchsorted(owners, documents)
    found = zip(documents.tolist(), numbers.tolist(), scores.tolist(), strict=True)
    return [ChunkHit(ids[document], number, score) for document, number, score in found]
