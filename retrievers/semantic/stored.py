"""Vectors as they are stored, half as large if wished, and read as float32."""

import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrievers.semantic.scoring import Lengths, longest_of

if TYPE_CHECKING:
    from torch import Tensor

DType: TypeAlias = Literal["float16", "bfloat16", "float32"]
# numpy knows no bfloat16: its bits are kept as whole numbers.
STORED: dict[DType, type[np.generic]] = {
    "float16": np.float16,
    "bfloat16": np.uint16,
    "float32": np.float32,
}


def as_stored(vectors: NDArray[np.float32], dtype: DType) -> NDArray[Any]:
    """Round vectors, (n, D), to a type; what is too large for float16 becomes infinite."""
    if dtype == "bfloat16":
        import torch

        bits: NDArray[Any] = torch.from_numpy(vectors).bfloat16().view(torch.uint16).numpy()
        return bits
    with np.errstate(over="ignore"):
        return vectors.astype(STORED[dtype])


def as_float32(stored: NDArray[Any], dtype: DType) -> NDArray[np.float32]:
    """What `as_stored` made, as numbers again."""
    if dtype == "bfloat16":  # the upper half of a float32
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


class Rows:
    """Vectors in a file or in memory, read as float32 block by block.

    Args:
        stored: (R, D) as `STORED` says.
        dtype: what the values are.

    Attributes:
        longest: Euclidean length of the longest row.
    """

    def __init__(self, stored: NDArray[Any], dtype: DType, longest: float) -> None:
        import torch

        with warnings.catch_warnings():
            # Torch knows no read-only tensors and warns of writing; nobody writes.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
            tensor = torch.from_numpy(stored)
        self._values = tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor
        self.longest = longest
        self._longest: dict[tuple[int, int], Lengths] = {}

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    @property
    def dimension(self) -> int:
        """Numbers in a row."""
        return int(self._values.shape[1])

    def block(self, start: int, out: "Tensor") -> "Tensor":
        """Rows from `start` on, as many as `out`, (n, D) float32, has room for; may lie in it."""
        import torch

        values = self._values[start : start + len(out)]
        if values.dtype == torch.float32:
            return values
        return out[: len(values)].copy_(values)

    def longest_in(self, start: int, block: "Tensor", size: int) -> Lengths:
        """(G,) bounds of the length of the longest of every `size` rows of a block.

        Computed once. block: what `block` gave for `start`, of as many rows each time.
        """
        key = (start, size)
        if key not in self._longest:
            self._longest[key] = np.minimum(longest_of(block, size), self.longest)
        return self._longest[key]

    def chosen(self, positions: NDArray[np.intp]) -> "Tensor":
        """(n, D) float32 rows at these positions."""
        import torch

        return self._values[torch.from_numpy(positions)].to(torch.float32)

    def take(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """(n, D) rows at these positions."""
        import torch

        taken = self._values[torch.from_numpy(positions)].to(torch.float64)
        rows: NDArray[np.float64] = taken.numpy()
        return rows
