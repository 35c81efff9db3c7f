"""The semantic backend: index and search."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import retrievers.semantic.hnsw as hnsw
from retrievers.base import Documents, Hit, Retriever, extra_version
from retrievers.chunks import Chunker, ChunkHit, chunk_hits, identity, joined, words
from retrievers.index import IndexWriter, fingerprint, open_or_build
from retrievers.models import named
from retrievers.query_vectors import QueryVectors
from retrievers.semantic.encoder import Encoder
from retrievers.semantic.exact import Decision, ExactSearch, Found
from retrievers.semantic.hnsw import HnswSearch
from retrievers.semantic.overlap import kept, overlap, probes
from retrievers.semantic.settings import SemanticSettings
from retrievers.semantic.stored import Rows
from retrievers.semantic.vectors import VectorBuilder, Vectors

logger = logging.getLogger(__name__)


class SemanticRetriever(Retriever):
    """Search by the vectors of a sentence-transformers model.

    A document without text has no vector and is never a hit. All others are, however far.

    Args:
        collection: what to search.
        settings: see `SemanticSettings`; the defaults if None.
        index_dir: where the index is kept: opened if it is there, built if not. None: in memory.
            A build that was stopped goes on where it was, with what it left beside `index_dir`.
        cache_size: answers to keep, and queries whose vectors are kept.

    Attributes:
        dimension: of the vectors.
        blank: number of documents without text.
        truncated: share, 0 to 1, of the other documents of which the model reads the beginning only
            (with chunks: of those that have such a piece).
        chunks: equal in two backends whose pieces are the same; None where texts are not cut.
        overlap: mean share of the documents of exact search, `settings.hnsw.overlap_k` of them,
            that the graph finds too, measured once for all settings it depends on; None in exact
            search.

    Raises:
        retrievers.models.ModelError: the model cannot be had, or does not fit the settings.
        retrievers.terms.EmptyCorpusError: no document has text.
        retrievers.semantic.vectors.VectorError: a vector holds NaN; names the document.
        retrievers.index.IndexMismatch: the index there belongs to other documents or settings.
        retrievers.index.IndexDamaged: the index there cannot be read.
    """

    backend = "semantic"

    def __init__(
        self,
        collection: Documents,
        settings: SemanticSettings | None = None,
        index_dir: Path | None = None,
        *,
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings or SemanticSettings()
        self._ids = collection.ids
        self.size = len(self._ids)
        self._encoder = Encoder(self.settings)
        self.dimension = self._encoder.dimension
        self._query_vectors = QueryVectors(self._encoder.queries, cache_size)
        parts = self._parts(collection)
        graph_parts = self._graph_parts(parts)
        self.fingerprint = fingerprint({**graph_parts, **self._search_parts()})
        vectors = self._vectors(collection, parts, index_dir)
        self._describe(vectors)
        rows = Rows(vectors.values, self.settings.dtype, vectors.about["longest"])
        self.chunks = self._chunks(collection)
        self._owners = vectors.owners
        decision = Decision(rows, self._owners, self._encoder.similarity, self.settings.chunk_depth)
        self.overlap: float | None = None
        self._finder: ExactSearch | HnswSearch = ExactSearch(decision)
        if self.settings.approximate:
            self._approximate(collection, decision, graph_parts, index_dir)

    @property
    def facts(self) -> dict[str, Any]:
        """Beside the size: of vectors and pieces, what was lost of texts, the graph's overlap."""
        known = super().facts | {
            "dimension": self.dimension,
            "native_dimension": self._encoder.native_dimension,
            "blank": self.blank,
            "truncated": self.truncated,
        }
        if self.chunks is not None:
            known["chunks"] = len(self._owners)
        if self.overlap is not None:
            known |= {"overlap": self.overlap, "overlap_k": self.settings.hnsw.overlap_k}
        return known

    def search_chunks(self, queries: Sequence[str], k: int) -> list[list[ChunkHit]]:
        """The best k pieces of each query, best first; `chunk_depth` plays no part in it."""
        with self._lock:
            owners, finder = self._owners, self._finder.of_rows()
            found = finder.best(self._encoded(queries), k)
            return [chunk_hits(self._ids, owners, *pieces) for pieces in found]

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [self._named(found) for found in self._finder.best(self._encoded(queries), k)]

    def _encoded(self, queries: Sequence[str]) -> NDArray[np.float32]:
        found = self._query_vectors.of(queries)
        return np.stack(found) if found else np.empty((0, self.dimension), dtype=np.float32)

    def _named(self, found: Found) -> list[Hit]:
        documents, scores = found
        pairs = zip(documents.tolist(), scores.tolist(), strict=True)
        return [Hit(self._ids[document], score) for document, score in pairs]

    def _parts(self, collection: Documents) -> dict[str, Any]:
        """What the vectors on the disk depend on."""
        chosen = {"model_kwargs", "dtype", "chunk_tokens", "chunk_words", "chunk_overlap"}
        if self.settings.trust_remote_code:  # code of the model's own is no part of its content
            chosen |= {"model", "revision"}
        return {
            "documents": collection.fingerprint,
            **named(self.settings.model, self.settings.revision),
            **self.settings.model_dump(mode="json", include=chosen),
            **self._encoder.identity(),
        }

    def _graph_parts(self, parts: dict[str, Any]) -> dict[str, Any]:
        """What the graph on the disk depends on, if there is one; else what the vectors do."""
        if not self.settings.approximate:
            return parts
        return parts | {
            "similarity": self._encoder.similarity,
            "hnsw": self.settings.hnsw.model_dump(include={"neighbours", "ef_construction"}),
            "versions": parts["versions"] | {"faiss-cpu": extra_version("faiss-cpu", hnsw.EXTRA)},
        }

    def _search_parts(self) -> dict[str, Any]:
        """What decides, beside the vectors and the graph, what a query brings back."""
        decides = {
            "query_prompt": self._encoder.query_prompt,
            "similarity": self._encoder.similarity,
            "chunk_depth": self.settings.chunk_depth,
        }
        if self.settings.approximate:
            decides["ef_search"] = self.settings.hnsw.ef_search
        return decides

    def _vectors(
        self, collection: Documents, parts: dict[str, Any], index_dir: Path | None
    ) -> Vectors:
        builder = VectorBuilder(collection, self._encoder, self.settings.dtype, self._chunker())
        if index_dir is None:
            return builder.in_memory()
        directory = Path(index_dir).absolute()
        shards = directory.parent / f".{directory.name}.shards"

        def write(writer: IndexWriter) -> None:
            builder.write(writer, shards, parts)
            writer.about["model"] = self.settings.model  # for people: its content is in the parts

        index = open_or_build(directory, self.backend, parts, write)
        shutil.rmtree(shards, ignore_errors=True)
        return Vectors(
            values=index.array("vectors"),
            owners=index.array("owners"),
            digests=index.array("digests"),
            about=index.about,
        )

    def _chunker(self) -> Chunker | None:
        size, overlap = self.settings.chunk_size, self.settings.chunk_overlap
        if size is None:
            return None
        if self.settings.chunk_tokens is None:
            return Chunker(words, size, overlap)
        self._encoder.check_chunks(size)
        return Chunker(self._encoder.offsets, size, overlap)

    def _chunks(self, collection: Documents) -> str | None:
        size, overlap = self.settings.chunk_size, self.settings.chunk_overlap
        if size is None:
            return None
        by_words = self.settings.chunk_tokens is None
        unit = "words" if by_words else f"tokens of {self._encoder.identity()['content']}"
        return identity(collection, unit, size, overlap)

    def _describe(self, vectors: Vectors) -> None:
        self.blank: int = vectors.about["blank"]
        cut = vectors.about["truncated"]
        self.truncated: float = cut / (vectors.about["documents"] - self.blank)
        if cut:
            logger.warning(
                "%.1f%% of the documents are longer than the %s tokens that %s reads, and their "
                "ends cannot be found; set chunk_tokens to have them searched in pieces",
                100 * self.truncated,
                self._encoder.limit,
                self.settings.model,
            )

    def _approximate(
        self,
        collection: Documents,
        decision: Decision,
        parts: dict[str, Any],
        index_dir: Path | None,
    ) -> None:
        folder = None if index_dir is None else Path(index_dir).absolute() / "hnsw"
        graph = hnsw.opened(decision, self.settings.hnsw, folder, parts)
        search = HnswSearch(decision, self.settings.hnsw, graph)
        self._finder = search
        measure = partial(self._overlap, collection, ExactSearch(decision), search)
        self.overlap = (
            measure() if folder is None else kept(folder, self._overlap_parts(parts), measure)
        )

    def _overlap_parts(self, graph_parts: dict[str, Any]) -> dict[str, Any]:
        """What the overlap with exact search depends on."""
        measured = self.settings.hnsw.model_dump(include={"overlap_k", "overlap_queries"})
        return {"graph": fingerprint(graph_parts), **self._search_parts(), **measured}

    def _overlap(self, collection: Documents, exact: ExactSearch, search: HnswSearch) -> float:
        def texts() -> Iterator[str]:
            return (joined(title, text) for title, text in collection.texts())

        chosen = self.settings.hnsw
        queries: NDArray[np.float32] = self._encoder.queries(probes(texts, chosen.overlap_queries))
        return overlap(exact, search, queries, chosen.overlap_k)
