"""Documents → numbered terms: what every BM25 engine is built from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Documents
from retrievers.chunks import joined


class EmptyCorpusError(ValueError):
    """There is nothing to find: no documents, or none with a token in it."""


@dataclass(frozen=True)
class Terms:
    """A tokenised collection.

    Attributes:
        vocabulary: the distinct tokens; a term's id is its place here.
        documents: (N,) the term ids of every document, or piece of one, in order, with repetitions.
        owners: (N,) the document of each piece; None where documents are whole.
    """

    vocabulary: list[str]
    documents: list[list[int]]
    owners: NDArray[np.int32] | None = None

    @property
    def blank(self) -> int:
        """Number of documents without a token."""
        filled = np.fromiter(map(bool, self.documents), np.bool_, len(self.documents))
        if self.owners is None:
            return int((~filled).sum())
        return len(np.unique(self.owners)) - len(np.unique(self.owners[filled]))


def number_terms(
    documents: Documents,
    analyze: Callable[[str], list[str]],
    title_weight: int,
    cut: Callable[[str], list[str]] | None = None,
) -> Terms:
    """Tokenise a collection.

    Args:
        documents: the collection.
        analyze: text → tokens.
        title_weight: how often the title's tokens stand before the text's.
        cut: text → pieces, each to be found alone; a title is the beginning of the text then.

    Raises:
        EmptyCorpusError: no document has a token.
    """
    ids: dict[str, int] = {}
    numbered: list[list[int]] = []
    owners: list[int] = []
    for position, tokens in _tokenised(documents, analyze, title_weight, cut):
        numbered.append([ids.setdefault(token, len(ids)) for token in tokens])
        owners.append(position)
    if not ids:
        field = "titles and texts" if title_weight else "texts (title_weight is 0)"
        what = f"the {field} of all {len(documents.ids)} are blank" if numbered else "it has none"
        raise EmptyCorpusError(f"the collection has no document to find: {what}; check its file")
    return Terms(list(ids), numbered, np.array(owners, dtype=np.int32) if cut else None)


def _tokenised(
    documents: Documents,
    analyze: Callable[[str], list[str]],
    title_weight: int,
    cut: Callable[[str], list[str]] | None,
) -> Iterator[tuple[int, list[str]]]:
    """Position of the document, and tokens, of every document or piece."""
    for position, (title, text) in enumerate(documents.texts()):
        if cut is None:
            tokens = analyze(title) * title_weight if title_weight else []
            yield position, tokens + analyze(text)
        else:
            yield from ((position, analyze(piece)) for piece in cut(joined(title, text)))
