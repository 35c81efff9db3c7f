"""Documents → numbered terms: what every BM25 engine is built from."""

from collections.abc import Callable
from dataclasses import dataclass

from retrievers.base import Documents


class EmptyCorpusError(ValueError):
    """There is nothing to find: no documents, or none with a token in it."""


@dataclass(frozen=True)
class Terms:
    """A tokenised collection.

    Attributes:
        vocabulary: the distinct tokens; a term's id is its place here.
        documents: (N,) the term ids of every document, in order, with repetitions.
    """

    vocabulary: list[str]
    documents: list[list[int]]

    @property
    def blank(self) -> int:
        """Number of documents without a token."""
        return sum(not document for document in self.documents)


def number_terms(
    documents: Documents, analyze: Callable[[str], list[str]], title_weight: int
) -> Terms:
    """Tokenise a collection: `title_weight` times the title's tokens, then the text's.

    Raises:
        EmptyCorpusError: no document has a token.
    """
    ids: dict[str, int] = {}
    numbered: list[list[int]] = []
    for title, text in documents.texts():
        tokens = analyze(title) * title_weight if title_weight else []
        tokens += analyze(text)
        numbered.append([ids.setdefault(token, len(ids)) for token in tokens])
    if not ids:
        field = "titles and texts" if title_weight else "texts (title_weight is 0)"
        what = f"the {field} of all {len(numbered)} are blank" if numbered else "it has none"
        raise EmptyCorpusError(f"the collection has no document to find: {what}; check its file")
    return Terms(list(ids), numbered)
