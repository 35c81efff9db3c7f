"""Exact search stays exact, and cheap, beside one very long vector and beside many equal ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.semantic import candidates, exact
from retrievers.semantic.exact import Decision, ExactSearch
from retrievers.semantic.scoring import precise
from retrievers.semantic.stored import Rows

SIMILARITIES = ["dot", "euclidean", "manhattan"]


def search_of(rows: Any, owners: Any, similarity: Any, depth: int | None = None) -> ExactSearch:
    longest = float(np.linalg.norm(rows.astype(np.float64), axis=1).max())
    return ExactSearch(Decision(Rows(rows, "float32", longest), owners, similarity, depth))


def truth(rows: Any, owners: Any, similarity: Any, query: Any, k: int) -> list[int]:
    """The best documents by float64 scores of all rows, ties in corpus order."""
    scores = precise(similarity, query.astype(np.float64), rows.astype(np.float64))
    order = np.argsort(-scores, kind="stable")
    return list(dict.fromkeys(owners[order].tolist()))[:k]


@given(
    seed=st.integers(0, 2**32 - 1),
    similarity=st.sampled_from(SIMILARITIES),
    k=st.integers(1, 60),
    outliers=st.integers(0, 3),
    rows_each=st.sampled_from([1, 3]),
)
def test_it_is_exact_beside_long_rows_and_ties(
    seed: int, similarity: str, k: int, outliers: int, rows_each: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((97, 5), dtype=np.float32)
    rows[40:60] = rows[40]
    # Rows that differ by less than float32 tells apart in a score.
    rows[60:80] = rows[60] * (1 + rng.integers(-2, 3, size=(20, 1)).astype(np.float32) * 2.0**-23)
    rows[rng.integers(97, size=outliers)] *= 1e4
    queries = rng.standard_normal((4, 5), dtype=np.float32)
    owners = (np.arange(97) // rows_each).astype(np.int32)
    search = search_of(rows, owners, similarity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "BLOCK", 24)
        patch.setattr(candidates, "GROUP", 7)
        patch.setattr(candidates, "LEAST", 8)
        patch.setattr(candidates, "MOST", 30)
        patch.setattr(exact, "GROUP", 7)
        found = search.best(queries, k)
    for query, (documents, _) in zip(queries, found, strict=True):
        assert documents.tolist() == truth(rows, owners, similarity, query, k)


def decided(search: ExactSearch, queries: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows, over all queries, whose float64 scores are computed."""
    seen: list[int] = []
    take = Rows.take

    def record(self: Rows, positions: Any) -> Any:
        seen.append(len(positions))
        return take(self, positions)

    monkeypatch.setattr(Rows, "take", record)
    search.best(queries, 10)
    return sum(seen)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_one_long_row_has_few_rows_decided(
    similarity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 16), dtype=np.float32)
    rows[9_000] *= 1e6
    queries = rng.standard_normal((2, 16), dtype=np.float32)
    search = search_of(rows, np.arange(20_000, dtype=np.int32), similarity)
    # 10 hits a query, some whose float32 scores are too near to tell, and the long row's group.
    assert decided(search, queries, monkeypatch) < 2 * (10 + 10 + candidates.GROUP)


@pytest.mark.parametrize("depth", [None, 7])
@pytest.mark.parametrize("rows_each", [1, 4])
def test_equal_rows_do_not_gather(
    depth: int | None, rows_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "BLOCK", 100)
    monkeypatch.setattr(candidates, "LEAST", 50)
    monkeypatch.setattr(candidates, "MOST", 400)
    most = [0]
    sort_out = candidates.Candidates._sort_out

    def record(self: Any) -> None:
        most[0] = max(most[0], self._pending)
        sort_out(self)

    monkeypatch.setattr(candidates.Candidates, "_sort_out", record)
    rows = np.ones((5_000, 4), dtype=np.float32)
    rows[4_999] *= 2  # the best is the last
    owners = (np.arange(5_000) // rows_each).astype(np.int32)
    search = search_of(rows, owners, "dot", depth)
    for documents, _ in search.best(np.ones((3, 4), dtype=np.float32), 5):
        expected = [owners[-1], *range(4)]
        if depth and rows_each == 4:  # seven rows: the last one, and six of the first two documents
            expected = [owners[-1], 0, 1]
        assert documents.tolist() == expected
    assert most[0] <= 400 + 3 * 100  # what is allowed, and a block
