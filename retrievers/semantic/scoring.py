"""How near two vectors are, and how far float32 can be off.

Scores are higher for nearer vectors: the dot product, or a distance with its sign turned. Cosine is
the dot product of vectors that were brought to length 1 when they were made.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Lengths: TypeAlias = NDArray[np.float64]
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
    similarity: Similarity, queries: Lengths, rows: Lengths, dimension: int
) -> NDArray[np.float64]:
    """The most by which a float32 score can differ from the true one.

    The usual bound of a sum of n products, n u / (1 - n u) |x| |y| (Higham, Accuracy and Stability
    of Numerical Algorithms, 3.1), holds in whatever order they are added.

    Args:
        similarity: which score.
        queries, rows: Euclidean lengths, of shapes that fit each other; the result has that shape.
        dimension: numbers in a vector.
    """
    terms = (dimension + 3) * ROUNDING
    if similarity in ("cosine", "dot"):
        size = queries * rows
    else:
        size = queries + rows
        if similarity == "manhattan":  # |x|₁ ≤ √D |x|₂
            size = size * np.sqrt(dimension)
    bound: NDArray[np.float64] = terms / (1 - terms) * size
    return bound


def longest_of(rows: "Tensor", size: int) -> Lengths:
    """Bounds, hardly above, of the length of the longest of every `size` of (n, D) float32 rows."""
    import torch

    lengths = torch.linalg.vector_norm(rows, dim=1).numpy().astype(np.float64)
    longest = np.maximum.reduceat(lengths, np.arange(0, len(lengths), size))
    dimension = rows.shape[1]
    # What float32 loses: rounding, and squares too small for it, below 2^-126 each.
    bounds: Lengths = longest * (1 + (dimension + 3) * ROUNDING) + np.sqrt(dimension) * 2.0**-63
    return bounds
