"""The best rows of each query, exactly, in memory that does not grow with the collection.

float32 scores of a block of rows at a time find the candidates: all rows that, given the rounding
error of float32, may be among the best. Their float64 scores decide, ties by corpus order.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.base import top_k
from retrievers.chunks import by_document
from retrievers.semantic.scoring import Similarity, error_bound, fast, precise
from retrievers.semantic.stored import Rows

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 16_384  # rows scored at once: fewer would have threads wait for each other more often
QUERIES = 128  # scored at once
PRECISE = 8192  # rows scored in float64 at once
LEAST = 20_000  # candidates before they are sorted out

Found = tuple[NDArray[np.intp], NDArray[np.float64]]  # documents, best first, and their scores


class Decision:
    """Candidates → documents, by float64 scores and the best row of each document.

    Args:
        rows: the vectors.
        owners: (R,) the document of each row, never falling.
        similarity: which score.
        depth: rows taken before they are grouped to documents; None: as many as are needed.
    """

    def __init__(
        self, rows: Rows, owners: NDArray[np.int32], similarity: Similarity, depth: int | None
    ) -> None:
        self.rows = rows
        self.owners = owners
        self.similarity = similarity
        self.depth = depth

    def best(self, query: NDArray[np.float32], candidates: NDArray[np.intp], k: int) -> Found:
        """The best k documents of one query, (D,), among these rows (ascending, distinct)."""
        wide = query.astype(np.float64)
        parts = [candidates[at : at + PRECISE] for at in range(0, len(candidates), PRECISE)]
        scored = [precise(self.similarity, wide, self.rows.take(part)) for part in parts]
        scores = np.concatenate(scored) if scored else np.empty(0)
        if self.depth is not None:
            kept = np.sort(top_k(scores, self.depth))
            candidates, scores = candidates[kept], scores[kept]
        documents, scores = by_document(self.owners[candidates], scores)
        best = top_k(scores, k)
        return documents[best], scores[best]

    def of_rows(self) -> "Decision":
        """The same for rows: each is a document of its own."""
        return Decision(self.rows, np.arange(len(self.rows), dtype=np.int32), self.similarity, None)


class ExactSearch:
    """Compares every query with every row.

    Args:
        decision: the vectors and how documents are made of rows.
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        grouped = decision.depth is None and bool((np.diff(decision.owners) == 0).any())
        self._owners = decision.owners if grouped else None

    def of_rows(self) -> "ExactSearch":
        """A search for rows in place of documents."""
        return ExactSearch(self._decision.of_rows())

    def best(self, queries: NDArray[np.float32], k: int) -> list[Found]:
        """The best k documents of each of (Q, D) queries."""
        found: list[Found] = []
        for start in range(0, len(queries), QUERIES):
            some = queries[start : start + QUERIES]
            pairs = zip(some, self._candidates(some, k), strict=True)
            found += [self._decision.best(query, rows, k) for query, rows in pairs]
        return found

    def _candidates(self, queries: NDArray[np.float32], k: int) -> list[NDArray[np.intp]]:
        import torch

        rows, similarity = self._decision.rows, self._decision.similarity
        # A row is given up only if it is worse by the errors of both scores that are compared.
        slack = 2 * error_bound(similarity, queries, rows.longest)
        kept = _Candidates(self._decision.depth or k, slack, self._owners)
        asked = torch.from_numpy(queries)
        # Memory is taken once: fresh pages for every block would cost as much as the product.
        room = torch.empty(min(BLOCK, len(rows)), rows.dimension)
        scores = torch.empty(len(queries) * len(room))
        with torch.inference_mode():
            for start in range(0, len(rows), BLOCK):
                block = rows.block(start, room)
                out = scores[: len(queries) * len(block)].view(len(queries), len(block))
                fast(similarity, asked, block, out)
                kept.add(out, start)
        return kept.rows()


class _Candidates:
    """Rows that may be among the best of each query, gathered block by block.

    Args:
        k: wanted a query.
        slack: (Q,) how far below the k-th best score a row is still a candidate.
        owners: (R,) document of each row, if k documents are wanted and not k rows.
    """

    def __init__(
        self, k: int, slack: NDArray[np.float64], owners: NDArray[np.int32] | None
    ) -> None:
        self._k = k
        self._slack = slack
        self._owners = owners
        self._floor = np.full(len(slack), -np.inf, dtype=np.float32)
        self._parts: list[Sequence[NDArray[np.generic]]] = []
        self._pending = 0
        self._reach = np.zeros(0, dtype=np.uint64)
        self._least = max(LEAST, 4 * k * len(slack))
        self._limit = self._least

    def add(self, scores: "Tensor", start: int) -> None:
        """Take what may be among the best of (Q, n) scores of the rows from `start` on."""
        import torch

        if self._owners is None and not self._parts and scores.shape[1] >= self._k:
            # Of a whole block this is much cheaper than to sort out its candidates.
            self._raise(torch.topk(scores, self._k).values[:, -1].numpy().astype(np.float64))
        places = self._reaching(scores)
        query, column = np.divmod(places, scores.shape[1])
        self._parts.append((query, column + start, scores.numpy().ravel()[places]))
        self._pending += len(places)
        if self._pending > self._limit:
            self._sort_out()

    def _reaching(self, scores: "Tensor") -> NDArray[np.intp]:
        """Places, in the flattened (Q, n) scores, of those that reach their query's floor.

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
        torch.ge(scores, torch.from_numpy(self._floor)[:, None], out=out)
        some = np.flatnonzero(reach)
        eight, place = np.nonzero(single.reshape(-1, 8)[some])
        return some[eight] * 8 + place

    def rows(self) -> list[NDArray[np.intp]]:
        """Positions of each query's candidates, ascending."""
        self._sort_out()
        query, row, _ = self._parts[0]
        order = np.lexsort((row, query))
        cuts = np.searchsorted(query[order], np.arange(1, len(self._slack)))
        return np.split(row[order].astype(np.intp), cuts)

    def _sort_out(self) -> None:
        """Raise the floors, and drop what is below them."""
        query, row, score = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._raise(self._reached(query, row, score))
        kept = score >= self._floor[query]
        self._parts = [(query[kept], row[kept], score[kept])]
        self._pending = int(kept.sum())
        # Where most scores are equal, little can be dropped: do not try again at every block.
        self._limit = max(self._least, 2 * self._pending)

    def _raise(self, reached: NDArray[np.float64]) -> None:
        # Rounded down, so that float32 keeps what float64 would keep.
        floor = (reached - self._slack).astype(np.float32)
        self._floor = np.nextafter(floor, np.float32(-np.inf))

    def _reached(
        self, query: NDArray[np.intp], row: NDArray[np.intp], score: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """(Q,) the k-th best score of each query; -inf where there are fewer."""
        if self._owners is not None:
            owner = self._owners[row]
            order = np.lexsort((-score, owner, query))
            query, owner, score = query[order], owner[order], score[order]
            best = np.diff(query, prepend=-1).astype(bool) | np.diff(owner, prepend=-1).astype(bool)
            query, score = query[best], score[best]
        order = np.lexsort((-score, query))
        counts = np.bincount(query, minlength=len(self._slack))
        enough = counts >= self._k
        places = (np.cumsum(counts) - counts)[enough] + self._k - 1
        reached = np.full(len(self._slack), -np.inf)
        reached[enough] = score[order][places]
        return reached
