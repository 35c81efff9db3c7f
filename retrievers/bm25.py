"""The two BM25 engines: rank-bm25, the reference, and bm25s, the fast one.

Both work out the same expression in the same order, so that scores agree to the last bit and ties
break alike. With tf the term's count in the document, N documents, df of them with the term:

    score = sum over the query's tokens of  idf * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean))

    lucene  idf = ln(1 + (N - df + .5) / (df + .5)), never negative (the factor k1 + 1, which Lucene
            leaves out since version 8, changes no ranking)
    okapi   idf = max(0, ln((N - df + .5) / (df + .5)))
    bm25+   idf = ln((N + 1) / df), and delta * idf for every token of the query
    bm25l   idf = ln((N + 1) / (df + .5)), tf moved by delta (bm25s alone; rank-bm25's BM25L
            multiplies by tf once more than the published formula does)

Both libraries add BM25+'s delta to documents without the term too: it raises scores, not ranks.
Sources: Kamphuis et al., ECIR 2020; Trotman et al., ADCS 2014.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from math import log
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrievers.base import import_extra

Variant: TypeAlias = Literal["lucene", "okapi", "bm25+", "bm25l"]
EngineName: TypeAlias = Literal["rank-bm25", "bm25s"]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Ids: TypeAlias = Sequence[int]  # of terms, one an occurrence

IDF: dict[Variant, Callable[[int, int], float]] = {
    "lucene": lambda df, n: log(1 + (n - df + 0.5) / (df + 0.5)),
    "okapi": lambda df, n: log(max((n - df + 0.5) / (df + 0.5), 1)),
    "bm25+": lambda df, n: log((n + 1) / df),
    "bm25l": lambda df, n: log((n + 1) / (df + 0.5)),
}
# bm25s's names: (form of tf, form of idf). BM25+ is ATIRE's tf with its delta added at the end.
_BM25S: dict[Variant, tuple[str, str]] = {
    "lucene": ("atire", "lucene"),
    "okapi": ("atire", "robertson"),
    "bm25+": ("atire", "bm25+"),
    "bm25l": ("bm25l", "bm25l"),
}


@dataclass(frozen=True)
class Formula:
    """Which BM25, with what constants."""

    variant: Variant
    k1: float
    b: float
    delta: float


@dataclass(frozen=True)
class Postings:
    """Which documents hold a term.

    Attributes:
        starts: (terms + 1,) int64; a term's documents are `documents[starts[t]:starts[t + 1]]`.
        documents: (postings,) int32 positions, ascending within a term.
        size: number of documents.
    """

    starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    size: int

    def of(self, term: int) -> NDArray[np.int32]:
        """Positions of the documents that hold a term, ascending."""
        return self.documents[self.starts[term] : self.starts[term + 1]]

    def df(self, term: int) -> int:
        """Number of documents that hold a term."""
        return int(self.starts[term + 1] - self.starts[term])

    def matching(self, terms: Ids) -> NDArray[np.intp]:
        """Positions of the documents that hold at least one of the terms, ascending."""
        held = np.zeros(self.size, dtype=np.bool_)
        for term in set(terms):
            held[self.of(term)] = True
        return np.flatnonzero(held)

    def holds(
        self, term: int, starts: NDArray[np.intp], ends: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Whether any of the documents from each start up to, but without, its end has the term."""
        documents = self.of(term)
        if not len(documents):
            return np.zeros(len(starts), dtype=np.bool_)
        place = np.minimum(np.searchsorted(documents, starts), len(documents) - 1)
        held: NDArray[np.bool_] = (documents[place] >= starts) & (documents[place] < ends)
        return held


class Engine(ABC):
    """Scores documents; built into plain arrays, so that these can be stored and mapped."""

    postings: Postings
    formula: Formula

    @abstractmethod
    def __init__(self, arrays: Arrays, formula: Formula) -> None:
        """From the arrays of `build`, in memory or mapped from a file."""

    @staticmethod
    @abstractmethod
    def build(documents: list[list[int]], terms: int, formula: Formula) -> dict[str, Any]:
        """Term ids of every document → the arrays the constructor takes."""

    @abstractmethod
    def _scores(self, terms: Ids) -> NDArray[np.float64]:
        """(N,) scores, without BM25+'s delta."""

    def scores(self, terms: Ids) -> NDArray[np.float64]:
        """(N,) scores of all documents; a term given twice counts twice."""
        scores = self._scores(terms)
        if self.formula.variant == "bm25+":
            idf = IDF["bm25+"]
            size = self.postings.size
            scores += self.formula.delta * sum(idf(self.postings.df(t), size) for t in terms)
        return scores


class RankBm25(Engine):
    """rank-bm25's BM25Okapi with the variant's IDF; it keeps the token ids.

    rank-bm25 walks through all documents for every token of a query. The rewrites of a group and
    the words of a language repeat: the scores of the terms last asked for are kept, in at most
    `KEPT_BYTES`, and added up in the order in which rank-bm25 would.
    """

    KEPT_BYTES: ClassVar = 16 * 2**20

    def __init__(self, arrays: Arrays, formula: Formula) -> None:
        self.formula = formula
        tokens, offsets = arrays["tokens"], arrays["offsets"]
        corpus = [tokens[start:end].tolist() for start, end in pairwise(offsets.tolist())]
        self.postings = _postings(tokens, offsets)
        self._bm25 = import_module("rank_bm25").BM25Okapi(
            corpus, k1=formula.k1, b=formula.b, epsilon=0
        )
        idf = IDF[formula.variant]
        self._bm25.idf = {term: idf(self.postings.df(term), len(corpus)) for term in self._bm25.idf}
        self._of_term = lru_cache(self.KEPT_BYTES // (8 * max(len(corpus), 1)))(self._score_term)

    @staticmethod
    def build(documents: list[list[int]], terms: int, formula: Formula) -> dict[str, Any]:
        lengths = [len(document) for document in documents]
        flat = [term for document in documents for term in document]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return {"tokens": np.array(flat, dtype=np.int32), "offsets": offsets}

    def _scores(self, terms: Ids) -> NDArray[np.float64]:
        scores = np.zeros(self.postings.size)
        for term in terms:
            scores += self._of_term(term)
        return scores

    def _score_term(self, term: int) -> NDArray[np.float64]:
        # With b = 1 a blank document divides 0 by 0; it is no hit, so nobody sees its NaN.
        with np.errstate(invalid="ignore"):
            scores: NDArray[np.float64] = self._bm25.get_scores([term])
        return scores


class Bm25s(Engine):
    """bm25s's precomputed scores, float64, one array slice a term."""

    def __init__(self, arrays: Arrays, formula: Formula) -> None:
        self.formula = formula
        size = int(arrays["size"][0])
        self.postings = Postings(arrays["starts"], arrays["documents"], size)
        self._bm25 = _bm25s(formula)
        self._bm25.scores = {
            "data": arrays["scores"],
            "indices": arrays["documents"],
            "indptr": arrays["starts"],
            "num_docs": size,
        }
        self._bm25.nonoccurrence_array = arrays.get("absent")

    @staticmethod
    def build(documents: list[list[int]], terms: int, formula: Formula) -> dict[str, Any]:
        bm25 = _bm25s(formula)
        vocabulary = {term: term for term in range(terms)}
        bm25.index((documents, vocabulary), create_empty_token=False, show_progress=False)
        arrays = {
            "scores": bm25.scores["data"],
            "documents": bm25.scores["indices"],
            "starts": bm25.scores["indptr"],
            "size": np.array([len(documents)]),
        }
        absent = bm25.nonoccurrence_array
        return arrays if absent is None else arrays | {"absent": absent}

    def _scores(self, terms: Ids) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._bm25.get_scores_from_ids(terms)
        return scores


ENGINES: dict[EngineName, type[Engine]] = {"rank-bm25": RankBm25, "bm25s": Bm25s}


def _bm25s(formula: Formula) -> Any:
    tf, idf = _BM25S[formula.variant]
    return import_extra("bm25s", "text").BM25(
        k1=formula.k1,
        b=formula.b,
        delta=formula.delta,
        method=tf,
        idf_method=idf,
        dtype="float64",
    )


def _postings(tokens: NDArray[np.int32], offsets: NDArray[np.int64]) -> Postings:
    lengths = np.diff(offsets)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    # Distinct (term, document) pairs as one number each, sorted by term, then by document.
    pairs = np.unique(tokens.astype(np.int64) * len(lengths) + documents)
    terms = pairs // len(lengths)
    counts = np.bincount(terms)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Postings(starts, (pairs % len(lengths)).astype(np.int32), len(lengths))
