"""The multimodal backend: index, search."""

import logging
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Documents, Hit, Retriever, top_k
from retrievers.chunks import by_document
from retrievers.index import REBUILD, IndexMismatch, IndexWriter, fingerprint, open_or_build
from retrievers.models import named
from retrievers.multimodal.centroids import centroids
from retrievers.multimodal.encoder import PageEncoder
from retrievers.multimodal.maxsim import MaxSim
from retrievers.multimodal.pooled import candidates, pooled_scores
from retrievers.multimodal.settings import MultimodalSettings
from retrievers.multimodal.stored import PageVectors
from retrievers.multimodal.vectors import PageVectorBuilder
from retrievers.pages.sources import page_source
from retrievers.query_vectors import QueryVectors
from retrievers.semantic.stored import Rows

logger = logging.getLogger(__name__)

QUERIES = 64  # scored at once: their scores of all pages are in memory


class MultimodalRetriever(Retriever):
    """Search of page images by late interaction, with a model of colpali-engine.

    A document is found by its best page. One without a page, or with blank ones only, is never a
    hit. All others are; with `candidates` in the settings, those that have a page among the
    candidates, whose number does not depend on k: where k is larger, there are fewer hits than k.

    Args:
        collection: what to search; its page images are in a column `images` or `image`, or are
            rendered from its texts.
        settings: see `MultimodalSettings`; the defaults if None.
        index_dir: where the index is kept: opened if it is there, built if not. None: in memory.
            A build that was stopped goes on where it was, with what it left beside `index_dir`.
            The checksums of image files are remembered there too, so that only files that were
            changed are read at the next opening.
        cache_size: answers to keep, and queries whose vectors are kept.

    Attributes:
        family: name of the model's class.
        dimension: of the vectors.
        pages: number of pages that can be found.
        blank: number of documents without anything to see.
        blank_pages, failed_pages: numbers of such pages.

    Raises:
        retrievers.models.ModelError: the model cannot be had, or not loaded completely.
        retrievers.pages.PageError, PageStyleError: a page cannot be had, or the model's processor
            refuses it; names its file.
        retrievers.base.MissingExtra: PDF files or fonts need a package that is not installed.
        retrievers.terms.EmptyCorpusError: no document has a page with something to see.
        retrievers.semantic.vectors.VectorError: a vector holds NaN; names document and page.
        retrievers.index.IndexMismatch: the index there belongs to other documents or settings, or
            lacks pages that failed, and none may.
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
        source = page_source(collection, self.settings.pages, _digests(index_dir))
        self._encoder = PageEncoder(self.settings)
        self._query_vectors = QueryVectors(self._encoder.queries, cache_size)
        self.family, self.dimension = self._encoder.family, self._encoder.dimension
        parts = {
            "documents": collection.fingerprint,
            "pages": source.identity(),
            **named(self.settings.model, self.settings.revision),
            "model_kwargs": self.settings.model_dump(mode="json")["model_kwargs"],
            "max_image_tokens": self.settings.max_image_tokens,
            "dtype": self.settings.dtype,
            **self._encoder.identity(),
        }
        self.fingerprint = fingerprint({**parts, **self._chosen()})
        skip = self.settings.pages.failed == "skip"
        builder = PageVectorBuilder(collection, source, self._encoder, self.settings.dtype, skip)
        self._vectors = self._opened(builder, parts, index_dir)
        self._describe()
        rows = Rows(self._vectors.values, self.settings.dtype, self._vectors.about["longest"])
        self._maxsim = MaxSim(rows, self._vectors.offsets, self.settings.block_vectors)
        self._first_stage = self._candidate_scores(rows, parts, index_dir)

    @property
    def facts(self) -> dict[str, Any]:
        """Beside the size: model family, dimension, and counts of pages."""
        return super().facts | {
            "family": self.family,
            "dimension": self.dimension,
            "pages": self.pages,
            "blank": self.blank,
            "blank_pages": self.blank_pages,
            "failed_pages": self.failed_pages,
        }

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        found: list[list[Hit]] = []
        for start in range(0, len(queries), QUERIES):
            vectors = self._encoded(queries[start : start + QUERIES])
            found += [self._ranked(scores, k) for scores in self._scores(vectors)]
        return found

    def _encoded(self, queries: Sequence[str]) -> list[NDArray[np.float32]]:
        return self._query_vectors.of(queries)

    def _scores(self, queries: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """(Q, P) scores of the pages; -inf where one is no candidate."""
        same, settings = self._vectors.same, self.settings
        if settings.scoring == "pooled":
            return pooled_scores(queries, self._vectors.pooled)[:, same]
        if settings.candidates is None:
            # Equal pages have one score; alone, their place in a block would change its last digit.
            return self._maxsim.scores(queries)[:, same]
        first = self._first_stage(queries)[:, same]
        owners, least = self._vectors.owners, settings.min_candidates
        wanted = candidates(first, settings.candidates, least, owners)
        scored = np.zeros_like(wanted)
        row, page = np.nonzero(wanted)
        scored[row, same[page]] = True
        scores = self._maxsim.chosen(queries, scored)[:, same]
        return np.where(wanted, scores, np.float32(-np.inf))

    def _ranked(self, scores: NDArray[np.float32], k: int) -> list[Hit]:
        documents, best = by_document(self._vectors.owners, scores.astype(np.float64))
        order = top_k(best, k, best > -np.inf)
        found = zip(documents[order].tolist(), best[order].tolist(), strict=True)
        return [Hit(self._ids[document], score) for document, score in found]

    def _opened(
        self, builder: PageVectorBuilder, parts: dict[str, Any], index_dir: Path | None
    ) -> PageVectors:
        if index_dir is None:
            return builder.in_memory()
        directory = Path(index_dir).absolute()
        shards = directory.parent / f".{directory.name}.shards"

        def write(writer: IndexWriter) -> None:
            builder.write(writer, shards, parts)
            writer.about["model"] = self.settings.model  # for people: its content is in the parts

        index = open_or_build(directory, self.backend, parts, write)
        self._refuse_failed(directory, index.about["failed_pages"])
        shutil.rmtree(shards, ignore_errors=True)
        arrays = {name: index.array(name) for name in ("values", *PageVectors.DERIVED)}
        return PageVectors(**arrays, about=index.about)

    def _refuse_failed(self, directory: Path, failed: int) -> None:
        if failed and self.settings.pages.failed == "stop":
            raise IndexMismatch(
                f"the index in {directory} lacks {failed} pages that failed when it was built, "
                "with pages.failed 'skip', and 'stop' is asked for: choose 'skip', or delete the "
                f"directory to have it rebuilt{REBUILD}, which names the first such page"
            )

    def _chosen(self) -> dict[str, Any]:
        """The settings that decide what is found, with the same vectors."""
        chosen = {"scoring", "candidates"}
        if self.settings.candidates is not None:
            chosen |= {"min_candidates", "first_stage"}
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
        self.size = len(self._ids)
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


def _digests(index_dir: Path | None) -> Path | None:
    """Where the checksums of image files are remembered; no part of the index, which they precede.

    None: nowhere.
    """
    if index_dir is None:
        return None
    directory = Path(index_dir).absolute()
    return directory.parent / f".{directory.name}.digests.json"
