"""BM25 over tokens: the lexical backend."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from retrievers.analysis import AnalysisSettings, Analyzer
from retrievers.base import Documents, Hit, Retriever, extra_version, top_k
from retrievers.bm25 import ENGINES, EngineName, Formula, Variant
from retrievers.chunks import (
    Chunker,
    ChunkHit,
    by_document,
    check_sizes,
    chunk_hits,
    identity,
    words,
)
from retrievers.index import IndexWriter, fingerprint, open_or_build
from retrievers.terms import Terms, number_terms

DELTAS: dict[Variant, float] = {"bm25+": 1.0, "bm25l": 0.5}


class LexicalSettings(BaseModel):
    """BM25's settings; see `retrievers.bm25` for the formulas.

    Attributes:
        engine: "rank-bm25", the reference, or "bm25s": the same ranking, hundreds of times faster.
        variant: form of tf and idf; "bm25l" needs bm25s.
        k1: how slowly repetitions of a term stop counting.
        b: 0 ignores a document's length, 1 weighs by it fully.
        delta: only for "bm25+" (None: 1.0) and "bm25l" (None: 0.5).
        title_weight: how often the title's tokens stand before the text's; 0 leaves titles out.
        chunk_words: cut documents, titles before texts, into pieces of so many words, and find a
            document by its best piece; None: documents are searched whole.
        chunk_overlap: words that a piece shares with the one before it.
        analysis: how text becomes tokens.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: EngineName = "rank-bm25"
    variant: Variant = "lucene"
    k1: float = Field(default=1.5, gt=0, allow_inf_nan=False)
    b: float = Field(default=0.75, ge=0, le=1)
    delta: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    title_weight: int = Field(default=1, ge=0)
    chunk_words: int | None = Field(default=None, ge=1)
    chunk_overlap: int = Field(default=0, ge=0)
    analysis: AnalysisSettings = AnalysisSettings()

    @model_validator(mode="after")
    def _fits(self) -> "LexicalSettings":
        if self.variant == "bm25l" and self.engine == "rank-bm25":
            raise ValueError(
                'variant "bm25l" needs engine "bm25s": BM25L of rank-bm25 multiplies by the '
                "term's frequency once too often, so that its ranking is another one"
            )
        if self.delta is not None and self.variant not in DELTAS:
            raise ValueError(
                f'delta is {self.delta}, but variant "{self.variant}" has none: leave it out, or '
                f"choose one of {', '.join(DELTAS)}"
            )
        check_sizes("chunk_words", self.chunk_words, self.chunk_overlap)
        if self.chunk_words is not None and self.title_weight != 1:
            raise ValueError(
                f"title_weight is {self.title_weight}, and with chunk_words the title is part of "
                "the first piece: leave one of the two out"
            )
        return self

    def formula(self) -> Formula:
        """The formula, delta filled in (0 where the variant has none)."""
        default = DELTAS.get(self.variant, 0.0)
        delta = default if self.delta is None else self.delta
        return Formula(self.variant, self.k1, self.b, delta)

    def parts(self) -> dict[str, Any]:
        """Everything but the documents that an index depends on, for its manifest."""
        return self.model_dump(mode="json") | {
            "delta": self.formula().delta,
            "versions": {self.engine: extra_version(self.engine, "text")}
            | self.analysis.versions(),
        }


class LexicalRetriever(Retriever):
    """BM25 search over a collection's titles and texts.

    A document without any of the query's tokens is no hit; one with some is, even at score 0.

    Args:
        collection: what to search.
        settings: BM25's settings; the defaults if None.
        index_dir: where the index is kept: opened if it is there, built if not. None: in memory.
        cache_size: answers to keep.

    Attributes:
        blank: number of documents without a token; they can never be found.
        chunks: equal in two backends whose pieces are the same; None where documents are whole.

    Raises:
        retrievers.terms.EmptyCorpusError: no document has a token.
        retrievers.index.IndexMismatch: the index there belongs to other documents or settings.
        retrievers.index.IndexDamaged: the index there cannot be read.
    """

    backend = "lexical"

    def __init__(
        self,
        collection: Documents,
        settings: LexicalSettings | None = None,
        index_dir: Path | None = None,
        *,
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings or LexicalSettings()
        parts = {"documents": collection.fingerprint} | self.settings.parts()
        self.fingerprint = fingerprint(parts)
        self.size = len(collection.ids)
        self._ids = collection.ids
        self._analyze = Analyzer(self.settings.analysis)
        size, overlap = self.settings.chunk_words, self.settings.chunk_overlap
        self.chunks = None if size is None else identity(collection, "words", size, overlap)
        self._load(collection, parts, index_dir)

    @property
    def facts(self) -> dict[str, Any]:
        """Beside the size: documents that cannot be found, and pieces where texts are cut."""
        pieces = {} if self._owners is None else {"chunks": len(self._owners)}
        return super().facts | {"blank": self.blank} | pieces

    def search_chunks(self, queries: Sequence[str], k: int) -> list[list[ChunkHit]]:
        """The best k pieces of each query, best first; a whole document is one piece."""
        with self._lock:
            return [self._pieces(self._known(self._analyze(query)), k) for query in queries]

    def coverage(
        self, queries: Sequence[str], hits: Sequence[Sequence[Hit | ChunkHit]]
    ) -> list[list[float]]:
        """How much of each query its hits hold.

        Args:
            queries: (Q,) search texts.
            hits: Q lists of hits, from this backend or another one over the same documents or
                pieces.

        Returns:
            For every hit the share, 0 to 1, of the query's distinct terms that its document, or
            piece, holds; terms that no document holds count too. 0 for a query without terms.

        Raises:
            ValueError: the lengths differ, or a hit is no document of the collection.
        """
        if len(queries) != len(hits):
            raise ValueError(f"{len(queries)} queries, but {len(hits)} lists of hits: they pair up")
        pairs = zip(queries, hits, strict=True)
        with self._lock:  # a stemmer is not safe to share between threads
            return [self._shares(query, found) for query, found in pairs]

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [self._ranked(self._known(self._analyze(query)), k) for query in queries]

    def _ranked(self, terms: list[int], k: int) -> list[Hit]:
        documents, scores = self._scored(terms)
        if self._owners is not None:
            documents, scores = by_document(self._owners[documents], scores)
        best = top_k(scores, k)
        return [
            Hit(self._ids[position], score)
            for position, score in zip(documents[best].tolist(), scores[best].tolist(), strict=True)
        ]

    def _pieces(self, terms: list[int], k: int) -> list[ChunkHit]:
        rows, scores = self._scored(terms)
        best = top_k(scores, k)
        owners = self._owners
        if owners is None:
            owners = np.arange(len(self._ids), dtype=np.int32)
        return chunk_hits(self._ids, owners, rows[best], scores[best])

    def _scored(self, terms: list[int]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The documents or pieces with any of the terms, ascending, and their scores."""
        if not terms:
            return np.empty(0, dtype=np.intp), np.empty(0)
        matching = self._engine.postings.matching(terms)
        return matching, self._engine.scores(terms)[matching]

    def _known(self, tokens: Sequence[str]) -> list[int]:
        return [self._terms[token] for token in tokens if token in self._terms]

    def _shares(self, query: str, hits: Sequence[Hit | ChunkHit]) -> list[float]:
        tokens = set(self._analyze(query))
        spans = np.array([self._span(hit) for hit in hits], dtype=np.intp).reshape(-1, 2)
        held = np.zeros(len(hits))
        for term in self._known(list(tokens)):
            held += self._engine.postings.holds(term, spans[:, 0], spans[:, 1])
        shares: list[float] = (held / max(len(tokens), 1)).tolist()
        return shares

    def _span(self, hit: Hit | ChunkHit) -> tuple[int, int]:
        """First and last row, the last one excluded, of what was found."""
        position = self._position(hit.id)
        if self._owners is None:
            return position, position + 1
        first, end = np.searchsorted(self._owners, [position, position + 1]).tolist()
        if not isinstance(hit, ChunkHit):
            return first, end
        return first + hit.number, first + hit.number + 1

    def _position(self, document_id: str) -> int:
        if document_id not in self._positions:
            raise ValueError(
                f"the hit {document_id!r} is no document of this collection; give hits of a "
                "backend over the same documents"
            )
        return self._positions[document_id]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {document_id: position for position, document_id in enumerate(self._ids)}

    def _load(self, documents: Documents, parts: Mapping[str, Any], index_dir: Path | None) -> None:
        if index_dir is None:
            terms, arrays = self._built(documents)
            vocabulary, self.blank = terms.vocabulary, terms.blank
        else:
            write = partial(self._write, documents)
            index = open_or_build(index_dir, self.backend, parts, write)
            arrays = {name: index.array(name) for name in index.about["arrays"]}
            vocabulary, self.blank = index.json("vocabulary"), index.about["blank"]
        self._owners = arrays.pop("owners", None)
        self._terms = {token: term for term, token in enumerate(vocabulary)}
        self._engine = ENGINES[self.settings.engine](arrays, self.settings.formula())

    def _write(self, documents: Documents, writer: IndexWriter) -> None:
        terms, arrays = self._built(documents)
        writer.json("vocabulary", terms.vocabulary)
        for name, values in arrays.items():
            writer.array(name, values)
        writer.about.update(blank=terms.blank, arrays=list(arrays))
        if terms.owners is not None:
            writer.about["chunks"] = len(terms.owners)

    def _built(self, documents: Documents) -> tuple[Terms, dict[str, NDArray[Any]]]:
        size, overlap = self.settings.chunk_words, self.settings.chunk_overlap
        cut = None if size is None else Chunker(words, size, overlap)
        terms = number_terms(documents, self._analyze, self.settings.title_weight, cut)
        engine = ENGINES[self.settings.engine]
        arrays = engine.build(terms.documents, len(terms.vocabulary), self.settings.formula())
        if terms.owners is not None:
            arrays["owners"] = terms.owners
        return terms, arrays
