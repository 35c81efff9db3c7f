"""Rows that may be among the best of each query, told by float32 scores whose error is bounded."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

GROUP = 256  # rows that share a bound of their scores' errors
LEAST = 20_000  # candidates before they are sorted out
MOST = 2**20  # candidates before true scores decide among them

Needed: TypeAlias = Callable[[int, NDArray[np.intp]], NDArray[np.intp]]
Part: TypeAlias = tuple[
    NDArray[np.intp], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]
]


class Candidates:
    """Rows that may be among the best of each query, gathered block by block.

    A row is given up only if its score, at the most that it can truly be, is below the k-th best of
    the least that scores can truly be.

    Args:
        queries: their number, Q, below 65,536.
        k: rows, or documents, wanted a query.
        owners: (R,) document of each row, if k documents are wanted and not k rows.
        needed: (number of a query, (n,) ascending rows) → the positions in them of those that are
            needed by true scores, whatever comes beside them.
    """

    def __init__(
        self, queries: int, k: int, owners: NDArray[np.int32] | None, needed: Needed
    ) -> None:
        self._queries = queries
        self._k = k
        self._owners = owners
        self._needed = needed
        self._reached = np.full(queries, -np.inf)  # (Q,) by the k-th best, truly
        # Query, row, and the least and the most that its true score can be, of each candidate.
        self._parts: list[Part] = []
        self._pending = 0
        self._reach = np.zeros(0, dtype=np.uint64)
        self._least = max(LEAST, 4 * k * queries)
        self._most = max(MOST, self._least)
        self._limit = self._least

    def add(self, scores: "Tensor", start: int, errors: NDArray[np.float64]) -> None:
        """Take what may be among the best of (Q, n) scores of the rows from `start` on.

        errors: (Q, G) the most by which scores differ from the true ones, of each GROUP of rows; or
            (Q, 1) of all.
        """
        import torch

        if self._owners is None and not self._parts and scores.shape[1] >= self._k:
            # Of a whole block this is much cheaper than to sort out its candidates.
            best = torch.topk(scores, self._k).values[:, -1].numpy().astype(np.float64)
            self._reached = np.maximum(self._reached, best - errors.max(axis=1))
        # Rounded down, so that float32 keeps what float64 would keep.
        floors = (self._reached[:, None] - errors).astype(np.float32)
        places = self._reaching(scores, np.nextafter(floors, np.float32(-np.inf)))
        query, column = np.divmod(places, scores.shape[1])
        groups = errors.shape[1]
        place = query if groups == 1 else query * groups + column // GROUP
        score, error = scores.numpy().ravel()[places], errors.ravel()[place]
        self._parts.append((query, column + start, score - error, score + error))
        self._pending += len(places)
        if self._pending > self._limit:
            self._sort_out()
        if self._pending > self._most:
            self._settle()

    def _reaching(self, scores: "Tensor", floors: NDArray[np.float32]) -> NDArray[np.intp]:
        """Places, in the flattened (Q, n) scores, of those that reach a floor, (Q, G) or (Q, 1).

        They are few: eight comparisons at a time are looked at as one number.
        """
        import torch

        size = scores.numel()
        if len(self._reach) * 8 < size:
            self._reach = np.zeros(-(-size // 8), dtype=np.uint64)
        reach = self._reach[: -(-size // 8)]
        reach[-1:] = 0  # what is beyond the last score
        single = reach.view(np.bool_)
        out = torch.from_numpy(single[:size]).view(scores.shape)
        _compare(scores, torch.from_numpy(floors), out)
        some = np.flatnonzero(reach)
        eight, place = np.nonzero(single.reshape(-1, 8)[some])
        return some[eight] * 8 + place

    def rows(self) -> list[NDArray[np.intp]]:
        """Positions of each query's candidates, ascending."""
        self._sort_out()
        query, row, *_ = self._parts[0]
        return [row[own] for own in self._by_query(query)]

    def _by_query(self, query: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Places of each query in `query`, ascending: rows are too, they came in their order."""
        order = np.argsort(query.astype(np.uint16), kind="stable")  # so small, they are counted
        return np.split(order, np.cumsum(np.bincount(query, minlength=self._queries))[:-1])

    def _sort_out(self) -> None:
        """Drop what cannot be among the best, given what was found since."""
        query, row, least, most = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._raise(query, row, least)
        self._keep((query, row, least, most), most >= self._reached[query])
        # Where most scores are equal, little can be dropped: do not try again at every block.
        self._limit = min(max(self._least, 2 * self._pending), self._most)

    def _settle(self) -> None:
        """Drop what float64 scores do not choose of what there is."""
        part = self._parts[0]
        kept = np.zeros(len(part[0]), dtype=bool)
        for number, own in enumerate(self._by_query(part[0])):
            kept[own[self._needed(number, part[1][own])]] = True
        self._keep(part, kept)
        self._limit = self._least

    def _keep(self, part: Part, kept: NDArray[np.bool_]) -> None:
        query, row, least, most = part
        self._parts = [(query[kept], row[kept], least[kept], most[kept])]
        self._pending = int(kept.sum())

    def _raise(
        self, query: NDArray[np.intp], row: NDArray[np.intp], least: NDArray[np.float64]
    ) -> None:
        """Raise what k rows, or documents, of a query reach."""
        if self._owners is not None:
            owner = self._owners[row]
            order = np.lexsort((-least, owner, query))
            query, owner, least = query[order], owner[order], least[order]
            best = np.diff(query, prepend=-1).astype(bool) | np.diff(owner, prepend=-1).astype(bool)
            query, least = query[best], least[best]
        for number, own in enumerate(self._by_query(query)):
            if len(own) >= self._k:
                kth = np.partition(least[own], len(own) - self._k)[len(own) - self._k]
                self._reached[number] = max(self._reached[number], kth)


def _compare(scores: "Tensor", floors: "Tensor", out: "Tensor") -> None:
    """Whether (Q, n) scores reach their group's floor, (Q, G), or their query's, (Q, 1)."""
    import torch

    if floors.shape[1] == 1:
        torch.ge(scores, floors, out=out)
        return
    full = scores.shape[1] // GROUP
    width = full * GROUP
    if full:
        shape = (len(scores), full, GROUP)
        groups, places = scores[:, :width].view(shape), out[:, :width].view(shape)
        torch.ge(groups, floors[:, :full, None], out=places)
    if width < scores.shape[1]:
        torch.ge(scores[:, width:], floors[:, full:], out=out[:, width:])
