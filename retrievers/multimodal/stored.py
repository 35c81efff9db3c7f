"""The vectors of pages as they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PageVectors:
    """The vectors of the pages that have something to see, in corpus order.

    Attributes:
        values: (V, D) of all pages, one page after the other, in the type of the settings.
        offsets: (P + 1,) page p has the vectors offsets[p] to offsets[p + 1], at least one.
        owners: (P,) position of the document that each page belongs to, never falling.
        same: (P,) the first page with the same image; a page's own position if there is none.
        pooled: (P, D) mean vector of each page, of length 1.
        about: counts `documents`, `blank` (documents without anything to see), `pages`,
            `blank_pages`, `failed_pages`; `longest` (vector length); `missing` (characters that the
            font of rendered pages lacks).
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]
    owners: NDArray[np.int32]
    same: NDArray[np.int32]
    pooled: NDArray[np.float32]
    about: Mapping[str, Any]

    DERIVED = ("offsets", "owners", "same", "pooled")  # arrays beside the values
