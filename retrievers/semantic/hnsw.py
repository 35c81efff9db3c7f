"""Approximate search for large collections: a graph of neighbours (FAISS, extra `faiss`).

Malkov and Yashunin, arXiv 1603.09320. The graph proposes rows, the stored vectors decide, so that
scores are the same as in exact search and only some of the documents can be missing. The graph
holds the vectors once more, as float32, and stays in memory.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from retrievers.base import import_extra
from retrievers.index import Index, IndexWriter, open_or_build
from retrievers.index_manifest import damaged
from retrievers.semantic.exact import Decision, Found
from retrievers.semantic.scoring import Similarity
from retrievers.semantic.stored import Rows

BLOCK = 8192  # rows added at once
EXTRA = "faiss"
GRAPH = "graph.faiss"  # file of the graph in its index


class HnswSettings(BaseModel):
    """Parameters of the graph, of searches in it, and of its comparison with exact search.

    A change of the first two has the graph built again; the others are free.

    Attributes:
        neighbours: links of a row, M in the paper: more find more and take more memory.
        ef_construction: candidates looked at for each row while the graph is built.
        ef_search: candidates looked at for each query; the stored vectors decide among all of them.
            Documents beyond theirs take further searches, and come after them.
        overlap_k: depth to which the graph is compared with exact search.
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
        graph: what `build` or `opened` gave.
    """

    def __init__(self, decision: Decision, settings: HnswSettings, graph: Any) -> None:
        self._decision = decision
        self._settings = settings
        self._graph = graph

    def of_rows(self) -> "HnswSearch":
        """A search for rows in place of documents."""
        return HnswSearch(self._decision.of_rows(), self._settings, self._graph)

    def best(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        """The best k documents of each of (Q, D) queries, as far as the graph leads to them.

        Those of a smaller k are always the first ones of a larger k. The graph is asked for rows
        without regard to k, and again for twice as many where that is too few documents; what is
        found only then comes after what was found before.
        """
        size, depth = len(self._decision.rows), self._decision.depth
        count = min(max(self._settings.ef_search, 2 * (depth or 0)), size)
        found = self._decided(queries, count)
        while depth is None and count < size:
            few = [place for place, (documents, _) in enumerate(found) if len(documents) < k]
            if not few:
                break
            count = min(2 * count, size)
            for place, more in zip(few, self._decided(queries[few], count), strict=True):
                found[place] = _appended(found[place], more)
        return [(documents[:k], scores[:k]) for documents, scores in found]

    def _decided(self, queries: NDArray[np.float32], count: int) -> list[Found]:
        """All documents of the `count` rows that the graph proposes for each query."""
        faiss = import_extra("faiss", EXTRA)
        # As many rows as candidates: how far the graph is searched decides what is found, no more.
        parameters = faiss.SearchParametersHNSW(efSearch=count)
        _, rows = self._graph.search(np.ascontiguousarray(queries), count, params=parameters)
        proposed = [np.unique(near[near >= 0]).astype(np.intp) for near in rows]
        pairs = zip(queries, proposed, strict=True)
        return [self._decision.best(query, near, max(len(near), 1)) for query, near in pairs]


def _appended(found: Found, more: Found) -> Found:
    """`found`, then those documents of `more` that are not in it."""
    new = ~np.isin(more[0], found[0])
    return np.append(found[0], more[0][new]), np.append(found[1], more[1][new])


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


def opened(
    decision: Decision, settings: HnswSettings, folder: Path | None, parts: Mapping[str, Any]
) -> Any:
    """The graph in `folder`, built first where there is none.

    Args:
        decision: the vectors and their similarity.
        settings: parameters of the graph.
        folder: of the graph's index; None: it is built, and kept nowhere.
        parts: JSON values that the graph depends on.

    Raises:
        IndexMismatch, IndexDamaged: see `open_or_build`.
    """

    def built() -> Any:
        return build(decision.rows, decision.similarity, settings)

    def write(writer: IndexWriter) -> None:
        import_extra("faiss", EXTRA).write_index(built(), str(writer.path / GRAPH))

    if folder is None:
        return built()
    return _read(open_or_build(folder, "hnsw", parts, write), decision.rows)


def _read(index: Index, rows: Rows) -> Any:
    faiss = import_extra("faiss", EXTRA)
    path = index.file(GRAPH)
    with path.open("rb"):  # what the system refuses is no damage
        pass
    try:
        graph = faiss.read_index(str(path))
    except RuntimeError as error:
        first = str(error).splitlines()[-1]
        raise damaged(index.path, f"{GRAPH} is no graph: {first}") from error
    shape = (graph.ntotal, graph.d)
    if not isinstance(graph, faiss.IndexHNSWFlat) or shape != (len(rows), rows.dimension):
        raise damaged(
            index.path, f"{GRAPH} is no graph over {len(rows)} vectors of {rows.dimension} numbers"
        )
    return graph
