"""Late interaction: the sum, over a query's vectors, of the largest product with a page's vector.

The vectors of all pages lie one after the other, so nothing is padded: a page's score is that of
the page alone, whatever it is scored with. One matrix product gives the products of a block of
vectors with those of many queries, small enough to stay in the processor's cache until the largest
of each page are taken. Formula: Khattab and Zaharia, ColBERT (arXiv 2004.12832), equation 3.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.semantic.stored import Rows

if TYPE_CHECKING:
    from torch import Tensor

QUERY_VECTORS = 2048  # scored at once; a query with more is scored alone
PRODUCTS = 2**20  # held at once, if a block may be that small: 4 MiB
LEAST = 64  # vectors of a block
PAGES = 4096  # whose queries are sorted out at once, where pages are chosen

Vectors = Sequence[NDArray[np.float32]]  # (n, D) of each query


class MaxSim:
    """Scores of pages.

    Args:
        rows: (V, D) the vectors of all pages.
        offsets: (P + 1,) int64: page p has the vectors offsets[p] to offsets[p + 1], at least one.
        block: vectors scored at once at most.
    """

    def __init__(self, rows: Rows, offsets: NDArray[np.int64], block: int) -> None:
        self._rows = rows
        self._offsets = offsets
        self._block = block

    def scores(self, queries: Vectors) -> NDArray[np.float32]:
        """(Q, P) scores of all pages."""
        found = np.empty((len(queries), len(self._offsets) - 1), dtype=np.float32)
        for first, last in _groups(queries):
            self._score_all(queries[first:last], found[first:last])
        return found

    def chosen(self, queries: Vectors, wanted: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(Q, P) scores of the pages that each query wants, (Q, P); -inf for the others."""
        found = np.full(wanted.shape, -np.inf, dtype=np.float32)
        for first, last in _groups(queries):
            self._score_chosen(queries[first:last], wanted[first:last], found[first:last])
        return found

    def _score_all(self, queries: Vectors, out: NDArray[np.float32]) -> None:
        import torch

        asked = _tensor(queries)
        starts = _starts(queries)
        size = max(LEAST, min(self._block, PRODUCTS // len(asked)))
        across = asked.T.contiguous()
        # Memory is taken once: fresh pages for every block would cost as much as the product.
        room = torch.empty(size, self._rows.dimension)
        products = torch.empty(size, len(asked))
        largest = torch.empty(size + 1, len(asked))
        with torch.inference_mode():
            for start, end in self._blocks(size):
                block = self._rows.block(start, room[: end - start])
                torch.mm(block, across, out=products[: end - start])
                first, last = self._largest(products, start, end, largest)
                done = largest[: last - first].numpy()
                out[:, first:last] = np.add.reduceat(done, starts, axis=1).T

    def _largest(
        self, products: "Tensor", start: int, end: int, largest: "Tensor"
    ) -> tuple[int, int]:
        """Write the largest products of each page in a block; (first, last) of those finished.

        A block that ends inside a page holds nothing else: what is known of the page stays in the
        first row until the next block.
        """
        import torch

        offsets = self._offsets
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        last = int(np.searchsorted(offsets, end, side="left")) - 1
        before = largest[0].clone() if start > offsets[first] else None
        edges = (np.clip(offsets[first : last + 2], start, end) - start).tolist()
        for place, (low, high) in enumerate(pairwise(edges)):
            torch.amax(products[low:high], 0, out=largest[place])
        if before is not None:
            torch.maximum(largest[0], before, out=largest[0])
        return first, last + 1 if end == offsets[last + 1] else last

    def _blocks(self, size: int) -> Iterator[tuple[int, int]]:
        """(start, end) of blocks of at most `size` vectors; of whole pages if one fits."""
        offsets, start = self._offsets, 0
        while start < offsets[-1]:
            fits = int(np.searchsorted(offsets, start + size, side="right")) - 1
            end = int(offsets[fits])
            if end <= start:
                end = min(start + size, int(offsets[fits + 1]))
            yield start, end
            start = end

    def _score_chosen(
        self, queries: Vectors, wanted: NDArray[np.bool_], out: NDArray[np.float32]
    ) -> None:
        """Page by page, each with the vectors of the queries that want it."""
        import torch

        asked, counts = _tensor(queries), np.array([len(query) for query in queries])
        first_of = _starts(queries)
        room = torch.empty(self._block, self._rows.dimension)
        for start in range(0, wanted.shape[1], PAGES):
            page, query = np.nonzero(wanted[:, start : start + PAGES].T)
            if not len(page):
                continue
            lengths = counts[query]
            places = np.cumsum(lengths) - lengths  # of each pair's largest products
            which = np.repeat(first_of[query] - places, lengths) + np.arange(lengths.sum())
            taken = np.flatnonzero(np.diff(page, prepend=-1))
            edges = np.append(places[taken], len(which)).tolist()
            largest = torch.empty(len(which))
            with torch.inference_mode():
                chosen = torch.from_numpy(which)
                for one, (low, high) in zip(page[taken].tolist(), pairwise(edges), strict=True):
                    some = asked.index_select(0, chosen[low:high])
                    self._page(start + one, some, room, largest[low:high])
            out[query, start + page] = np.add.reduceat(largest.numpy(), places)

    def _page(self, page: int, asked: "Tensor", room: "Tensor", largest: "Tensor") -> None:
        """Write the largest product of each of (T, D) vectors with one of the page's, (T,)."""
        import torch

        first, last = self._offsets[page : page + 2].tolist()
        for start in range(first, last, self._block):
            block = self._rows.block(start, room[: min(self._block, last - start)])
            products = torch.mm(asked, block.T)
            if start == first:
                torch.amax(products, 1, out=largest)
            else:
                torch.maximum(largest, torch.amax(products, 1), out=largest)


def _tensor(queries: Vectors) -> "Tensor":
    import torch

    return torch.from_numpy(np.concatenate(queries).astype(np.float32, copy=False))


def _starts(queries: Vectors) -> NDArray[np.intp]:
    counts = np.array([len(query) for query in queries], dtype=np.intp)
    starts: NDArray[np.intp] = np.cumsum(counts) - counts
    return starts


def _groups(queries: Vectors) -> Iterator[tuple[int, int]]:
    """(first, last) of runs of queries that are scored together."""
    first = vectors = 0
    for place, query in enumerate(queries):
        if place > first and vectors + len(query) > QUERY_VECTORS:
            yield first, place
            first, vectors = place, 0
        vectors += len(query)
    if queries:
        yield first, len(queries)
