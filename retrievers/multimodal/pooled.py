"""One mean vector a page: a cheap score, alone or to choose candidates for late interaction."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from retrievers.base import top_k
from retrievers.semantic.stored import DType, as_float32

PAGES = 64  # whose vectors are read at once


def pooled_pages(
    values: NDArray[np.generic], offsets: NDArray[np.int64], dtype: DType
) -> NDArray[np.float32]:
    """(P, D) mean of each page's vectors, brought to length 1. Arguments: as in `PageVectors`."""
    pages = len(offsets) - 1
    found = np.empty((pages, values.shape[1]), dtype=np.float32)
    for first in range(0, pages, PAGES):
        part = offsets[first : first + PAGES + 1]
        some = as_float32(values[part[0] : part[-1]], dtype)
        # Sums have the direction of means.
        found[first : first + PAGES] = np.add.reduceat(some, part[:-1] - part[0], axis=0)
    return _unit(found)


def pooled_queries(queries: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """(Q, D) mean of each query's vectors, (n, D), brought to length 1."""
    return _unit(np.stack([query.sum(axis=0) for query in queries]))


def pooled_scores(
    queries: Sequence[NDArray[np.float32]], pages: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(Q, P) cosine of the mean vectors. pages: (P, D), pooled."""
    scores: NDArray[np.float32] = pooled_queries(queries) @ pages.T
    return scores


def candidates(
    scores: NDArray[np.float32], share: float, documents: int, owners: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """(Q, P) the pages of the best scores: a share of all, or as many as hold some documents.

    Args:
        scores: (Q, P) of a first stage.
        share: of the pages.
        documents: held at least; all of them where there are fewer.
        owners: (P,) position of the document of each page.
    """
    enough = min(documents, len(np.unique(owners)))
    wanted = np.zeros(scores.shape, dtype=bool)
    for row, own in zip(wanted, scores, strict=True):
        row[_covering(own.astype(np.float64), ceil(share * len(own)), enough, owners)] = True
    return wanted


def _covering(
    scores: NDArray[np.float64], pages: int, documents: int, owners: NDArray[np.int32]
) -> NDArray[np.intp]:
    """The fewest pages of the best scores that are so many and hold so many documents."""
    count = max(pages, documents)
    while True:
        best = top_k(scores, count)
        _, first = np.unique(owners[best], return_index=True)
        if len(first) >= documents:
            return best[: max(pages, int(np.sort(first)[documents - 1]) + 1)]
        count *= 2


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return found
