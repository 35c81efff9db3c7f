"""The multimodal backend: index, search."""

import logging
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Documents, Hit, PermanentSearchError, Retriever, top_k
from retrievers.chunks import by_document
from retrievers.index import fingerprint, open_or_build
from retrievers.multimodal.centroids import centroids
from retrievers.multimodal.encoder import PageEncoder
from retrievers.multimodal.maxsim import MaxSim
from retrievers.multimodal.pooled import candidates, pooled_scores
from retrievers.multimodal.settings import MultimodalSettings
from retrievers.multimodal.stored import PageVectors
from retrievers.multimodal.vectors import PageVectorBuilder
from retrievers.pages.sources import page_source
from retrievers.semantic.stored import Rows

logger = logging.getLogger(__name__)

QUERIES = 64  # scored at once: their scores of all pages are in memory
PAGE_ID = "{document}#page-{number}"


class MultimodalRetriever(Retriever):
    """Search of page images by late interaction, with a model of colpali-engine.

    A document without a page, or with blank ones only, is never a hit. All others are.

    Args:
        collection: what to search; its page images are in a column `images` or `image`, or are
            rendered from its texts.
        settings: see `MultimodalSettings`; the defaults if None.
        index_dir: where the index is kept: opened if it is there, built if not. None: in memory.
            A build that was stopped goes on where it was, with what it left beside `index_dir`.
        cache_size: answers to keep.

    Attributes:
        family: name of the model's class.
        dimension: of the vectors.
        pages: number of pages that can be found.
        blank: number of documents without anything to see.
        blank_pages, failed_pages: numbers of such pages; both keep their place in the numbering.

    Raises:
        retrievers.models.ModelError: the model cannot be had, or not loaded completely.
        retrievers.pages.PageError, PageStyleError: a page cannot be had; names its file.
        retrievers.base.MissingExtra: PDF files or fonts need a package that is not installed.
        retrievers.terms.EmptyCorpusError: no document has a page with something to see.
        retrievers.semantic.vectors.VectorError: a vector holds NaN; names document and page.
        retrievers.index.IndexMismatch: the index there belongs to other documents or settings.
        retrievers.index.IndexDamaged: the index there cannot be read.
    """

    backend = "multimodal"

    def __init__(
        self,
        collection: Documents,
        settings: MultimodalSettings | None = None,
        index_dir: Path | None = None,
        *,
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings or MultimodalSettings()
        self._ids = collection.ids
        source = page_source(collection, self.settings.pages)
        self._encoder = PageEncoder(self.settings)
        self.family, self.dimension = self._encoder.family, self._encoder.dimension
        parts = {
            "documents": collection.fingerprint,
            "pages": source.identity(),
            "model": self.settings.model,
            "revision": self.settings.revision,
            "model_kwargs": self.settings.model_dump(mode="json")["model_kwargs"],
            "max_image_tokens": self.settings.max_image_tokens,
            "dtype": self.settings.dtype,
            **self._encoder.identity(),
        }
        self.fingerprint = fingerprint({**parts, **self._chosen()})
        builder = PageVectorBuilder(collection, source, self._encoder, self.settings.dtype)
        self._vectors = self._opened(builder, parts, index_dir)
        self._describe()
        rows = Rows(self._vectors.values, self.settings.dtype, self._vectors.about["longest"])
        self._maxsim = MaxSim(rows, self._vectors.offsets, self.settings.block_vectors)
        self._first_stage = self._candidate_scores(rows, parts, index_dir)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        found: list[list[Hit]] = []
        for start in range(0, len(queries), QUERIES):
            vectors = self._encoded(queries[start : start + QUERIES])
            found += [self._ranked(scores, k) for scores in self._scores(vectors, k)]
        return found

    def _encoded(self, queries: Sequence[str]) -> list[NDArray[np.float32]]:
        vectors = self._encoder.queries(queries)
        for query, rows in zip(queries, vectors, strict=True):
            if not np.isfinite(rows).all():
                raise PermanentSearchError(
                    f"a vector of the query {query!r} holds NaN; look for NaN in the model"
                )
        return vectors

    def _scores(self, queries: Sequence[NDArray[np.float32]], k: int) -> NDArray[np.float32]:
        """(Q, P) scores of the pages; -inf where one is no candidate."""
        same = self._vectors.same
        if self.settings.scoring == "pooled":
            return pooled_scores(queries, self._vectors.pooled)[:, same]
        if self.settings.candidates is None:
            # Equal pages have one score; alone, their place in a block would change its last digit.
            return self._maxsim.scores(queries)[:, same]
        first = self._first_stage(queries)[:, same]
        wanted = candidates(first, self.settings.candidates, k, self._groups())
        scored = np.zeros_like(wanted)
        row, page = np.nonzero(wanted)
        scored[row, same[page]] = True
        scores = self._maxsim.chosen(queries, scored)[:, same]
        return np.where(wanted, scores, np.float32(-np.inf))

    def _groups(self) -> NDArray[np.int32]:
        """(P,) what a page is grouped to: its document, or itself."""
        if self.settings.unit == "document":
            return self._vectors.owners
        return np.arange(self.pages, dtype=np.int32)

    def _ranked(self, scores: NDArray[np.float32], k: int) -> list[Hit]:
        units, best = by_document(self._groups(), scores.astype(np.float64))
        order = top_k(best, k, best > -np.inf)
        found = zip(units[order].tolist(), best[order].tolist(), strict=True)
        return [Hit(self._id(unit), score) for unit, score in found]

    def _id(self, unit: int) -> str:
        if self.settings.unit == "document":
            return self._ids[unit]
        document = self._ids[self._vectors.owners[unit]]
        return PAGE_ID.format(document=document, number=self._vectors.numbers[unit])

    def _opened(
        self, builder: PageVectorBuilder, parts: dict[str, Any], index_dir: Path | None
    ) -> PageVectors:
        if index_dir is None:
            return builder.in_memory()
        directory = Path(index_dir).absolute()
        shards = directory.parent / f".{directory.name}.shards"
        write = partial(builder.write, folder=shards, parts=parts)
        index = open_or_build(directory, self.backend, parts, write)
        shutil.rmtree(shards, ignore_errors=True)
        arrays = {name: index.array(name) for name in ("values", *PageVectors.DERIVED)}
        return PageVectors(**arrays, about=index.about)

    def _chosen(self) -> dict[str, Any]:
        """The settings that decide what is found, with the same vectors."""
        chosen = {"unit", "scoring", "candidates"}
        if self.settings.candidates is not None:
            chosen.add("first_stage")
        if self.settings.by_centroids:
            chosen.add("centroids")
        return self.settings.model_dump(mode="json", include=chosen)

    def _candidate_scores(
        self, rows: Rows, parts: dict[str, Any], index_dir: Path | None
    ) -> Callable[[Sequence[NDArray[np.float32]]], NDArray[np.float32]]:
        """Scores of the first stage; the centroids are built where they are wanted and missing."""
        if not self.settings.by_centroids:
            return partial(pooled_scores, pages=self._vectors.pooled)
        settings = self.settings.centroids
        found = centroids(rows, self._vectors.offsets, settings, parts, index_dir)
        return partial(found.scores, probes=settings.probes)

    def _describe(self) -> None:
        about = self._vectors.about
        self.pages = len(self._vectors.owners)
        self.size = self.pages if self.settings.unit == "page" else len(self._ids)
        self.blank: int = about["blank"]
        self.blank_pages: int = about["blank_pages"]
        self.failed_pages: int = about["failed_pages"]
        if self.failed_pages:
            logger.warning("%d of %d pages failed", self.failed_pages, about["pages"])
        if about["missing"]:
            logger.warning(
                "the font %s lacks %d characters of the texts, which look alike on the pages "
                "(%s …); name a font that has them with pages.style.font",
                self.settings.pages.style.font,
                len(about["missing"]),
                about["missing"][:8],
            )
