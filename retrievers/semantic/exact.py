"""The best rows of each query, exactly, in memory that does not grow with the collection.

float32 scores of a block of rows at a time find the candidates: all rows that, given the rounding
error of float32, may be among the best. Their float64 scores decide, ties by corpus order; at the
end, or earlier where so many scores are nearly equal that the candidates would fill the memory.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.base import top_k
from retrievers.chunks import by_document
from retrievers.semantic.candidates import GROUP, Candidates
from retrievers.semantic.scoring import Lengths, Similarity, error_bound, fast, precise
from retrievers.semantic.stored import Rows

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 16_384  # rows scored at once: fewer would have threads wait for each other more often
QUERIES = 128  # scored at once
PRECISE = 8192  # rows scored in float64 at once

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
        scores = self._scores(query, candidates)
        if self.depth is not None:
            kept = np.sort(top_k(scores, self.depth))
            candidates, scores = candidates[kept], scores[kept]
        documents, scores = by_document(self.owners[candidates], scores)
        best = top_k(scores, k)
        return documents[best], scores[best]

    def needed(
        self, query: NDArray[np.float32], candidates: NDArray[np.intp], k: int
    ) -> NDArray[np.intp]:
        """Positions of the candidates that `best` needs for k documents, whatever comes beside.

        Ascending; at most k, or `depth`.
        """
        order = np.argsort(-self._scores(query, candidates), kind="stable")
        if self.depth is None:
            _, first = np.unique(self.owners[candidates[order]], return_index=True)
            order = order[np.sort(first)]  # the best row of each document
        return np.sort(order[: self.depth or k])

    def _scores(
        self, query: NDArray[np.float32], candidates: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        wide = query.astype(np.float64)
        parts = [candidates[at : at + PRECISE] for at in range(0, len(candidates), PRECISE)]
        scored = [precise(self.similarity, wide, self.rows.take(part)) for part in parts]
        return np.concatenate(scored) if scored else np.empty(0)

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

        def needed(number: int, found: NDArray[np.intp]) -> NDArray[np.intp]:
            return self._decision.needed(queries[number], found, k)

        kept = Candidates(len(queries), self._decision.depth or k, self._owners, needed)
        lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
        alike = self._alike(lengths)
        asked = torch.from_numpy(queries)
        # Memory is taken once: fresh pages for every block would cost as much as the product.
        room = torch.empty(min(BLOCK, len(rows)), rows.dimension)
        scores = torch.empty(len(queries) * len(room))
        with torch.inference_mode():
            for start in range(0, len(rows), BLOCK):
                block = rows.block(start, room)
                out = scores[: len(queries) * len(block)].view(len(queries), len(block))
                fast(similarity, asked, block, out)
                errors = self._errors(lengths, start, block) if alike is None else alike
                kept.add(out, start, errors)
        return kept.rows()

    def _alike(self, lengths: Lengths) -> NDArray[np.float64] | None:
        """(Q, 1) errors of all scores where rows are equally long; None where they are not."""
        rows, similarity = self._decision.rows, self._decision.similarity
        if similarity != "cosine":
            return None
        return error_bound(similarity, lengths[:, None], np.array(rows.longest), rows.dimension)

    def _errors(self, lengths: Lengths, start: int, block: "Tensor") -> NDArray[np.float64]:
        """(Q, G) the most by which scores of each group of rows differ from the true ones.

        One long row is to cost its group alone. lengths: (Q,) of the queries.
        """
        rows, similarity = self._decision.rows, self._decision.similarity
        longest = rows.longest_in(start, block, GROUP)
        return error_bound(similarity, lengths[:, None], longest, rows.dimension)
