"""How near two vectors are, and how far float32 can be off.

Scores are higher for nearer vectors: the dot product, or a distance with its sign turned. Cosine is
the dot product of vectors that were brought to length 1 when they were made.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Similarity: TypeAlias = Literal["cosine", "dot", "euclidean", "manhattan"]
ROUNDING = 2.0**-24  # of one float32 operation


def fast(similarity: Similarity, queries: "Tensor", rows: "Tensor", out: "Tensor") -> None:
    """Write the float32 scores of (Q, D) queries and (n, D) rows into `out`, (Q, n)."""
    import torch

    if similarity in ("cosine", "dot"):
        torch.mm(queries, rows.T, out=out)
        return
    order = 2.0 if similarity == "euclidean" else 1.0
    # The fast way to Euclidean distances subtracts large numbers and loses near neighbours.
    exact = "donot_use_mm_for_euclid_dist"
    torch.neg(torch.cdist(queries, rows, p=order, compute_mode=exact), out=out)


def precise(
    similarity: Similarity, query: NDArray[np.float64], rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) float64 scores of one query, (D,), and (n, D) rows.

    Every row is summed alone and in one order, so that equal rows have equal scores.
    """
    scores: NDArray[np.float64]
    if similarity in ("cosine", "dot"):
        scores = (rows * query).sum(axis=1)
    elif similarity == "euclidean":
        scores = -np.sqrt(((rows - query) ** 2).sum(axis=1))
    else:
        scores = -np.abs(rows - query).sum(axis=1)
    return scores


def error_bound(
    similarity: Similarity, queries: NDArray[np.float32], longest: float
) -> NDArray[np.float64]:
    """(Q,) the most by which a float32 score can differ from the true one.

    The usual bound of a sum of n products, n u / (1 - n u) |x| |y| (Higham, Accuracy and Stability
    of Numerical Algorithms, 3.1), holds in whatever order they are added.

    Args:
        similarity: which score.
        queries: (Q, D).
        longest: Euclidean length of the longest row.
    """
    terms = (queries.shape[1] + 3) * ROUNDING
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    if similarity in ("cosine", "dot"):
        size = lengths * longest
    else:
        size = lengths + longest
        if similarity == "manhattan":  # |x|₁ ≤ √D |x|₂
            size = size * np.sqrt(queries.shape[1])
    bound: NDArray[np.float64] = terms / (1 - terms) * size
    return bound
