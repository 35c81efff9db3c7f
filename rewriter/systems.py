"""The systems that need no model: the query as it is, two rules, and a person's rewrite.

    made = rewrites("top_idf", queries, CollectionTerms(collection))

A rule that finds nothing in a query gives a `Rewrite` with a failure: the raw query is sent then,
and counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from retrievers.analysis import Analyzer
from retrievers.base import Documents
from retrievers.queries import Query
from rewriter.records import Rewrite

UNTRAINED = "untrained"  # the system that is the base model itself
FILE = "file:"  # before the path of a file of rewrites
TOP = 10
# These end a sentence wherever they stand; the others only before white space or at the end, so
# that 3.5, os.path and ?x=1 stay whole.
_WIDE = "。！？｡．؟।…"
_MARKS = re.compile(rf"[{_WIDE}.!?]+[\"'”’»)\]」』】》）]*")
_ASKED = re.compile(r"[?？؟][!.…？?\"'”’»)\]」』】》）]*$")
_ABBREVIATION = re.compile(r"[^\W\d_]\.[^\W\d_]\.")  # e.g., i.e., U.S.
_LETTER = re.compile(r"\w")


class Statistics(Protocol):
    """What a rule may know about the collection that is searched."""

    def analyse(self, text: str) -> list[str]:
        """The text's terms in order, with repetitions."""

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        """For each term the number of documents that hold it, 0 for an unknown one."""


class CollectionTerms:
    """`Statistics` of a collection's titles and texts, counted at first use.

    analyze: text → terms; give the lexical backend's own to speak its terms (default: `Analyzer`).
    """

    def __init__(
        self, documents: Documents, analyze: Callable[[str], list[str]] | None = None
    ) -> None:
        self._documents = documents
        self._analyze = analyze or Analyzer()

    def analyse(self, text: str) -> list[str]:
        """The text's terms in order, with repetitions."""
        return self._analyze(text)

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        """For each term the number of documents that hold it, 0 for an unknown one."""
        return [self._counts[term] for term in terms]

    @cached_property
    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for title, text in self._documents.texts():
            counts.update({*self._analyze(title), *self._analyze(text)})
        return counts


def last_sentence(text: str) -> str:
    """The last sentence, which in a long message is often the question.

    Sentences end at . ! ? and their relatives in other scripts, and at line ends; a rest without a
    mark counts as one. Pieces without a letter or digit do not count. Blank if there is none.
    """
    found = [piece for line in text.splitlines() for piece in _sentences(line)]
    return next((piece.strip() for piece in reversed(found) if _LETTER.search(piece)), "")


def question(text: str) -> str:
    """The sentences that end in a question mark, in any script; blank if there is none."""
    found = [piece.strip() for line in text.splitlines() for piece in _sentences(line)]
    return " ".join(piece for piece in found if _ASKED.search(piece) and _LETTER.search(piece))


def top_idf(text: str, statistics: Statistics, n: int = TOP) -> str:
    """The n distinct terms that the fewest documents hold, in the order of the query.

    Of equally rare terms the earlier one is taken; terms that no document holds are left out. Blank
    if none is left. For Chinese, Japanese and Korean the terms are bigrams: meant for the lexical
    backend.
    """
    terms = list(dict.fromkeys(statistics.analyse(text)))
    counted = zip(statistics.document_frequency(terms), range(len(terms)), strict=True)
    rarest = sorted((count, place) for count, place in counted if count > 0)[:n]
    return " ".join(terms[place] for place in sorted(place for _, place in rarest))


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for marks in _MARKS.finditer(line):
        if _ends(line, marks):
            yield line[start : marks.end()]
            start = marks.end()
    yield line[start:]


def _ends(line: str, marks: re.Match[str]) -> bool:
    if any(mark in _WIDE for mark in marks.group()):
        return True
    end = marks.end()
    if end < len(line) and not line[end].isspace():
        return False
    return not _ABBREVIATION.fullmatch(line, max(0, end - 4), end)


def _raw(query: Query, statistics: Statistics) -> Rewrite:
    return Rewrite(None)


def _last_sentence(query: Query, statistics: Statistics) -> Rewrite:
    return _or_failure(last_sentence(query.text), "no_sentence")


def _question(query: Query, statistics: Statistics) -> Rewrite:
    return _or_failure(question(query.text), "no_question")


def _top_idf(query: Query, statistics: Statistics) -> Rewrite:
    return _or_failure(top_idf(query.text, statistics), "no_known_term")


def _reference(query: Query, statistics: Statistics) -> Rewrite:
    return _or_failure(query.reference or "", "no_reference")


def _or_failure(text: str, failure: str) -> Rewrite:
    return Rewrite(text) if text.strip() else Rewrite(None, failure)


class System(NamedTuple):
    """label: its name in tables. rewrite: what it makes of a query."""

    label: str
    rewrite: Callable[[Query, Statistics], Rewrite]


SYSTEMS: dict[str, System] = {
    "raw": System("raw query", _raw),
    "last_sentence": System("last sentence", _last_sentence),
    "question": System("sentences with a ?", _question),
    "top_idf": System(f"{TOP} rarest terms", _top_idf),
    "reference": System("reference rewrite", _reference),
}


class UnknownSystem(ValueError):
    """A system that is not in `SYSTEMS`."""


def rewrites(name: str, queries: Sequence[Query], statistics: Statistics) -> dict[str, Rewrite]:
    """Query id → rewrite by one of `SYSTEMS`. Raises UnknownSystem, which lists them."""
    if name not in SYSTEMS:
        raise UnknownSystem(f"no rule {name!r}; there are: {', '.join(SYSTEMS)}")
    return {query.id: SYSTEMS[name].rewrite(query, statistics) for query in queries}
