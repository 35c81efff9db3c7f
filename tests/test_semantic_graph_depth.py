"""A graph of neighbours finds the same first hits, however many are asked for."""

import importlib.util
from typing import Any

import numpy as np
import pytest

from retrievers.semantic.exact import Decision
from retrievers.semantic.hnsw import HnswSearch, HnswSettings, build
from retrievers.semantic.stored import Rows
from tests import semantic_engines
from tests.semantic_engines import build as build_retriever
from tests.semantic_engines import words

models, model = semantic_engines.models, semantic_engines.model  # fixtures

pytestmark = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')
POOR = HnswSettings(neighbours=2, ef_construction=4, ef_search=8)
DEPTHS = (1, 3, 8, 9, 20, 50, 100, 400)


def unit(rng: np.random.Generator, count: int) -> Any:
    found = rng.standard_normal((count, 8), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def searched(owners: Any, depth: int | None = None) -> HnswSearch:
    """A poor graph, so that what it proposes depends on how far it is searched."""
    rows = Rows(unit(np.random.default_rng(0), len(owners)), "float32", 1.01)
    decision = Decision(rows, owners, "cosine", depth)
    return HnswSearch(decision, POOR, build(rows, "cosine", POOR))


QUERIES = unit(np.random.default_rng(1), 25)
DOCUMENTS = np.arange(400, dtype=np.int32)


@pytest.mark.parametrize("rows_each", [1, 10])
def test_the_first_hits_do_not_depend_on_how_many_are_wanted(rows_each: int) -> None:
    search = searched(DOCUMENTS // rows_each)
    longest = search.best(QUERIES, 400)
    assert min(len(documents) for documents, _ in longest) > 20
    for k in DEPTHS:
        for found, whole in zip(search.best(QUERIES, k), longest, strict=True):
            for own, all_of_it in zip(found, whole, strict=True):
                assert own.tolist() == all_of_it[:k].tolist()


def test_nor_do_pieces_or_a_fixed_number_of_them() -> None:
    for search in (
        searched(DOCUMENTS // 10).of_rows(),
        searched(DOCUMENTS // 10, depth=30),
    ):
        longest = search.best(QUERIES, 400)
        for k in DEPTHS:
            for found, whole in zip(search.best(QUERIES, k), longest, strict=True):
                assert found[0].tolist() == whole[0][:k].tolist()


def test_what_is_found_only_later_comes_after() -> None:
    search = searched(DOCUMENTS)
    longest = search.best(QUERIES, 400)
    # The poor graph misses near rows at first: their scores are out of order, which is how it is
    # seen here that what came first keeps its place.
    assert any((np.diff(scores) > 0).any() for _, scores in longest)
    for documents, scores in longest:
        assert len(set(documents.tolist())) == len(documents)
        assert (np.diff(scores[:8]) <= 0).all()


def test_all_candidates_are_decided_by_the_stored_vectors() -> None:
    search = searched(DOCUMENTS)
    seen: list[int] = []
    best = search._decision.best

    def record(query: Any, candidates: Any, k: int) -> Any:
        seen.append(len(candidates))
        return best(query, candidates, k)

    search._decision.best = record  # type: ignore[method-assign]
    search.best(QUERIES, 1)
    assert seen == [8] * 25


@pytest.mark.parametrize("chosen", [{}, {"chunk_tokens": 3}, {"chunk_tokens": 3, "chunk_depth": 9}])
def test_a_reward_and_an_evaluation_see_the_same(model: str, chosen: dict[str, Any]) -> None:
    poor = {"neighbours": 2, "ef_construction": 4, "ef_search": 8}
    retriever = build_retriever(
        words(200, length=7), model, approximate="hnsw", hnsw=poor, **chosen
    )
    queries = words(10, seed=2)
    deep = retriever.search(queries, 100)
    assert retriever.search(queries, 3) == [hits[:3] for hits in deep]
