"""Approximate search for large collections: a graph of neighbours (FAISS, extra `faiss`).

Malkov and Yashunin, arXiv 1603.09320. The graph proposes rows, the stored vectors decide, so that
scores are the same as in exact search and only some of the documents can be missing. The graph
holds the vectors once more, as float32, and stays in memory.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from retrievers.base import import_extra
from retrievers.semantic.exact import Decision, ExactSearch, Found
from retrievers.semantic.scoring import Similarity
from retrievers.semantic.stored import Rows

BLOCK = 8192  # rows added at once
EXTRA = "faiss"


class HnswSettings(BaseModel):
    """Parameters of the graph.

    Attributes:
        neighbours: links of a row, M in the paper: more find more and take more memory.
        ef_construction: candidates looked at for each row while the graph is built.
        ef_search: candidates looked at for each query.
        overlap_k: depth to which the graph is compared with exact search when it is built.
        overlap_queries: queries of that comparison.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    neighbours: int = Field(default=32, ge=2)
    ef_construction: int = Field(default=200, ge=1)
    ef_search: int = Field(default=128, ge=1)
    overlap_k: int = Field(default=10, ge=1)
    overlap_queries: int = Field(default=200, ge=1)


class HnswSearch:
    """Looks for rows in a graph.

    Args:
        decision: the vectors and how documents are made of rows.
        settings: parameters of the graph.
        graph: what `build` made or `read` read.
    """

    def __init__(self, decision: Decision, settings: HnswSettings, graph: Any) -> None:
        self._decision = decision
        self._settings = settings
        self._graph = graph

    def of_rows(self) -> "HnswSearch":
        """A search for rows in place of documents."""
        return HnswSearch(self._decision.of_rows(), self._settings, self._graph)

    def best(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        """The best k documents of each of (Q, D) queries, as far as the graph leads to them."""
        size = len(self._decision.rows)
        wanted = self._decision.depth or k
        while True:
            rows = self._rows(queries, min(2 * wanted, size))
            pairs = zip(queries, rows, strict=True)
            found = [self._decision.best(query, near, k) for query, near in pairs]
            # The rows of one document may have crowded the others out.
            few = min((len(documents) for documents, _ in found), default=k) < k
            if self._decision.depth is not None or not few or 2 * wanted >= size:
                return found
            wanted *= 2

    def _rows(self, queries: NDArray[np.float32], count: int) -> list[NDArray[np.intp]]:
        faiss = import_extra("faiss", EXTRA)
        wide = max(self._settings.ef_search, count)
        parameters = faiss.SearchParametersHNSW(efSearch=wide)
        _, rows = self._graph.search(np.ascontiguousarray(queries), count, params=parameters)
        return [np.unique(near[near >= 0]).astype(np.intp) for near in rows]


def build(rows: Rows, similarity: Similarity, settings: HnswSettings) -> Any:
    """The graph over all rows.

    Raises:
        MissingExtra: FAISS is not installed.
        ValueError: the graph knows no such similarity.
    """
    import torch

    faiss = import_extra("faiss", EXTRA)
    if similarity == "manhattan":
        raise ValueError('approximate "hnsw" knows no manhattan distance; leave it out')
    inner = similarity in ("cosine", "dot")
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    graph = faiss.IndexHNSWFlat(rows.dimension, settings.neighbours, metric)
    graph.hnsw.efConstruction = settings.ef_construction
    room = torch.empty(min(BLOCK, len(rows)), rows.dimension)
    for start in range(0, len(rows), BLOCK):
        graph.add(rows.block(start, room).numpy())
    return graph


def save(graph: Any, path: Path) -> None:
    """Write a graph to a file."""
    import_extra("faiss", EXTRA).write_index(graph, str(path))


def read(path: Path) -> Any:
    """A graph from a file that `save` wrote."""
    return import_extra("faiss", EXTRA).read_index(str(path))


def overlap(exact: ExactSearch, graph: HnswSearch, queries: NDArray[np.float32], k: int) -> float:
    """Mean share, 0 to 1, of the k documents of exact search that the graph finds too."""
    pairs = zip(exact.best(queries, k), graph.best(queries, k), strict=True)
    shares = [len(np.intersect1d(true[0], near[0])) / len(true[0]) for true, near in pairs]
    return float(np.mean(shares))


def probes(texts: Callable[[], Iterable[str]], count: int) -> list[str]:
    """Queries for `overlap`: up to eight words in a row, each from a document drawn at random.

    Args:
        texts: gives the documents' texts, twice; only those that are drawn are kept.
        count: of the queries.
    """
    rng = np.random.default_rng(0)
    size = sum(1 for text in texts() if text)
    drawn = rng.choice(size, size=min(count, size), replace=False).tolist()
    wanted = set(drawn)
    filled = (text for text in texts() if text)
    kept = {place: text for place, text in enumerate(filled) if place in wanted}
    return [_words(kept[place], rng) for place in drawn]


def _words(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    first = int(rng.integers(max(len(words) - 7, 1)))
    return " ".join(words[first : first + 8])[:80]  # some scripts write without spaces
