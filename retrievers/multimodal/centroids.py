"""Groups of near vectors, which lead from a query to the pages worth scoring.

Every vector of every page belongs to the nearest of C centroids, and a centroid knows the pages
that hold one of its vectors. Each vector of a query looks at the pages of the few centroids nearest
to it, and such a page counts with the product of that vector and the centroid; the largest products
are summed, as late interaction sums those with the pages' own vectors. No page is read.

Sources: Santhanam et al., PLAID (arXiv 2205.09707), whose first stage this is; Dhillon and Modha,
2001, for k-means with directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from retrievers.index import IndexWriter, open_or_build
from retrievers.semantic.stored import Rows

if TYPE_CHECKING:
    from torch import Tensor

PRODUCTS = 2**22  # of vectors and centroids, held at once: 16 MiB
LEAST = 64  # vectors of a block, however many centroids there are


class CentroidSettings(BaseModel):
    """Parameters of the groups.

    Attributes:
        count: of the centroids; None for about sixteen times the root of the number of vectors, a
            power of two. More make smaller groups, which say more, and take longer to build.
        probes: centroids that a vector of a query looks at. A page in none of their groups counts
            0 for that vector. Many probes favour long pages, which are in more groups.
        rounds: of k-means.
        sample: vectors a centroid that k-means looks at, at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int | None = Field(default=None, ge=1)
    probes: int = Field(default=2, ge=1)
    rounds: int = Field(default=5, ge=1)
    sample: int = Field(default=32, ge=1)


@dataclass(frozen=True)
class Centroids:
    """Groups of vectors, and in which pages they are.

    Attributes:
        directions: (C, D) float32, of length 1.
        starts: (C + 1,) int64; centroid c leads to `pages[starts[c]:starts[c + 1]]`.
        pages: (postings,) int32, ascending and distinct within a centroid.
        size: number of pages.
    """

    directions: NDArray[np.float32]
    starts: NDArray[np.int64]
    pages: NDArray[np.int32]
    size: int

    ARRAYS = ("directions", "starts", "pages")

    def scores(self, queries: Sequence[NDArray[np.float32]], probes: int) -> NDArray[np.float32]:
        """(Q, P) of all pages; 0 where no vector of the query leads to a page.

        Args:
            queries: (n, D) vectors of each.
            probes: centroids that each vector looks at.
        """
        found = np.zeros((len(queries), self.size), dtype=np.float32)
        largest = np.zeros(self.size, dtype=np.float32)
        step = _block(len(self.directions))
        for query, out in zip(queries, found, strict=True):
            for start in range(0, len(query), step):
                products = query[start : start + step] @ self.directions.T
                self._add(products, min(probes, len(self.directions)), largest, out)
        return found

    def _add(
        self,
        products: NDArray[np.float32],
        probes: int,
        largest: NDArray[np.float32],
        out: NDArray[np.float32],
    ) -> None:
        """Add what some vectors say of each page, one after the other; `largest` is (P,) zeros."""
        nearest = np.argpartition(-products, probes - 1, axis=1)[:, :probes]
        order = np.argsort(np.take_along_axis(products, nearest, axis=1), axis=1)
        # The nearest last: of a page in several groups the largest product stays.
        for own, chosen in zip(products, np.take_along_axis(nearest, order, axis=1), strict=True):
            groups = [self.pages[self.starts[one] : self.starts[one + 1]] for one in chosen]
            for centroid, pages in zip(chosen, groups, strict=True):
                largest[pages] = max(own[centroid], 0)
            out += largest
            for pages in groups:
                largest[pages] = 0


def centroids(
    rows: Rows,
    offsets: NDArray[np.int64],
    settings: CentroidSettings,
    parts: Mapping[str, Any],
    index_dir: Path | None,
) -> Centroids:
    """Build, or open what was built.

    Args:
        rows, offsets, settings: as in `build`.
        parts: what the vectors depend on.
        index_dir: of the vectors' index, inside of which these are kept; None: in memory.

    Raises:
        retrievers.index.IndexMismatch, IndexDamaged: see `open_or_build`.
    """
    if index_dir is None:
        return build(rows, offsets, settings)

    def write(writer: IndexWriter) -> None:
        made = build(rows, offsets, settings)
        for name in Centroids.ARRAYS:
            writer.array(name, getattr(made, name))
        writer.about["centroids"] = len(made.directions)

    # The number itself, so that an index of another default is not taken for one of today's.
    count = settings.count or default_count(len(rows))
    own = {**settings.model_dump(mode="json", exclude={"probes"}), "count": count}
    directory = Path(index_dir).absolute() / "centroids"
    index = open_or_build(directory, "centroids", {**parts, "centroids": own}, write)
    arrays = {name: index.array(name) for name in Centroids.ARRAYS}
    return Centroids(**arrays, size=len(offsets) - 1)


def build(rows: Rows, offsets: NDArray[np.int64], settings: CentroidSettings) -> Centroids:
    """Find centroids, and the pages of each; a centroid nearest to no vector is left out.

    Takes memory for the sample, and about 24 bytes for each pair of a centroid and a page of its.

    Args:
        rows: (V, D) vectors of all pages.
        offsets: (P + 1,) page p has the vectors offsets[p] to offsets[p + 1].
        settings: see `CentroidSettings`; no more centroids than vectors are made.
    """
    import torch
    from tqdm import tqdm

    pages = len(offsets) - 1
    count = min(settings.count or default_count(len(rows)), len(rows))
    with torch.inference_mode():
        directions = _directions(rows, count, settings)
        # Distinct (centroid, page) pairs as one number each.
        room = torch.empty(_block(count), rows.dimension)
        pairs = []
        for start in tqdm(range(0, len(rows), len(room)), desc="grouping", disable=None):
            group = _nearest(rows.block(start, room), directions).numpy()
            places = np.arange(start, start + len(group))
            page = np.searchsorted(offsets, places, side="right") - 1
            pairs.append(np.unique(group * pages + page))
    return _grouped(np.unique(np.concatenate(pairs)), directions.numpy(), pages)


def _grouped(pairs: NDArray[np.int64], directions: NDArray[np.float32], pages: int) -> Centroids:
    """Sorted pairs, centroid x number of pages + page, as groups."""
    starts = np.searchsorted(pairs, np.arange(len(directions)) * pages).astype(np.int64)
    starts = np.append(starts, len(pairs))
    # One without pages, such as the second of two equal ones, would take a probe and lead nowhere.
    filled = np.diff(starts) > 0
    starts = np.append(starts[:-1][filled], len(pairs))
    return Centroids(directions[filled], starts, (pairs % pages).astype(np.int32), pages)


def default_count(vectors: int) -> int:
    """About 16 √V, rounded down to a power of two, as in PLAID's reference implementation."""
    return 1 << (max(16 * isqrt(vectors), 1).bit_length() - 1)


def _directions(rows: Rows, count: int, settings: CentroidSettings) -> "Tensor":
    """(C, D) by k-means with directions on a sample; a group that loses all keeps its centroid."""
    import torch

    rng = np.random.default_rng(0)
    wanted, step = min(len(rows), settings.sample * count), _block(count)
    taken = np.sort(rng.choice(len(rows), size=wanted, replace=False))
    sample = rows.chosen(taken)
    first = torch.from_numpy(rng.choice(wanted, size=count, replace=False))
    directions = torch.nn.functional.normalize(sample[first])
    for _ in range(settings.rounds):
        blocks = (sample[start : start + step] for start in range(0, wanted, step))
        group = torch.cat([_nearest(block, directions) for block in blocks])
        sums = torch.zeros_like(directions).index_add_(0, group, sample)
        filled = torch.bincount(group, minlength=count) > 0
        directions[filled] = torch.nn.functional.normalize(sums[filled])
    return directions


def _block(count: int) -> int:
    """Vectors whose products with so many centroids are held at once."""
    return max(LEAST, PRODUCTS // count)


def _nearest(vectors: "Tensor", directions: "Tensor") -> "Tensor":
    """(n,) which direction each of (n, D) vectors is nearest to, whatever its length."""
    return (vectors @ directions.T).argmax(dim=1)
