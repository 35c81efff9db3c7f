"""Late interaction: by hand, against colpali-engine's scorer, and each page as if it were alone."""

import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from retrievers.multimodal import centroids, maxsim
from retrievers.multimodal.centroids import Centroids, CentroidSettings, build, default_count
from retrievers.multimodal.maxsim import MaxSim
from retrievers.multimodal.pooled import candidates, pooled_pages, pooled_scores
from retrievers.semantic.stored import DType, Rows, as_float32, as_stored

if TYPE_CHECKING:
    from torch import Tensor

Pages = list[NDArray[np.float32]]


def vectors(*rows: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32)


def offsets_of(pages: Pages) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(page) for page in pages])]).astype(np.int64)


def scorer(pages: Pages, block: int = 4096, dtype: DType = "float32") -> MaxSim:
    stored = as_stored(np.concatenate(pages), dtype)
    return MaxSim(Rows(stored, dtype, 1.0), offsets_of(pages), block)


def unit(rng: np.random.Generator, count: int, dimension: int = 16) -> NDArray[np.float32]:
    rows = rng.standard_normal((count, dimension), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def alone(query: NDArray[np.float32], page: NDArray[np.float32]) -> float:
    """The score by its definition."""
    return float((query.astype(np.float64) @ page.T.astype(np.float64)).max(axis=1).sum())


A = vectors((-1, 0))
B = vectors((-0.5, 0), (-0.6, 0))
QUERY = vectors((1, 0))


@pytest.mark.parametrize(("pages", "expected"), [([A, B], [-1, -0.5]), ([B, A], [-0.5, -1])])
def test_padding_never_enters_the_maximum(pages: Pages, expected: list[float]) -> None:
    # Padded with a vector of zeros, A would score 0 and come first.
    assert scorer(pages).scores([QUERY]).tolist() == [expected]
    wanted = np.ones((1, 2), dtype=bool)
    assert scorer(pages).chosen([QUERY], wanted).tolist() == [expected]


def test_the_sum_over_the_query_of_the_largest_product() -> None:
    page = vectors((1, 0), (0, 1), (0.5, 0.5))
    query = vectors((1, 0), (0, 2), (-1, -1))
    # 1 + 2 + max(-1, -1, -1) = 2
    assert scorer([page]).scores([query]).tolist() == [[2.0]]


def test_equal_to_colpali_engine_at_equal_lengths() -> None:
    import torch
    from colpali_engine.models import ColPaliProcessor

    rng = np.random.default_rng(0)
    pages = [unit(rng, 25) for _ in range(40)]
    queries = [unit(rng, 7) for _ in range(9)]
    expected = ColPaliProcessor.score_multi_vector(
        list(map(torch.from_numpy, queries)), list(map(torch.from_numpy, pages)), device="cpu"
    )
    assert np.abs(scorer(pages).scores(queries) - expected.numpy()).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("block", [64, 100, 4096])
def test_uneven_pages_score_as_if_alone(block: int, dtype: DType) -> None:
    """Pages of 1 to 300 vectors: a block of 64 holds many of them, or a part of one."""
    rng = np.random.default_rng(1)
    sizes = [1, 300, 64, 65, 1, 1, 128, 2, 63, 200, 1, 299, *rng.integers(1, 80, 60).tolist()]
    pages = [unit(rng, size) for size in sizes]
    queries = [unit(rng, size) for size in (1, 20, 3, 11)]
    read = [as_float32(as_stored(page, dtype), dtype) for page in pages]
    expected = np.array([[alone(query, page) for page in read] for query in queries])
    found = scorer(pages, block, dtype).scores(queries)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5
    wanted = rng.random(expected.shape) < 0.3
    chosen = scorer(pages, block, dtype).chosen(queries, wanted)
    assert (chosen[~wanted] == -np.inf).all()
    assert np.abs(chosen[wanted] - expected[wanted]).max() < 1e-5


@pytest.mark.parametrize("limit", [1, 5, 12])
def test_queries_are_scored_in_groups(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    pages = [unit(rng, size) for size in (3, 70, 5)]
    queries = [unit(rng, size) for size in (4, 8, 1, 9, 2)]
    expected = scorer(pages).scores(queries)
    monkeypatch.setattr(maxsim, "QUERY_VECTORS", limit)
    assert np.abs(scorer(pages).scores(queries) - expected).max() < 1e-6
    wanted = np.ones(expected.shape, dtype=bool)
    assert np.abs(scorer(pages).chosen(queries, wanted) - expected).max() < 1e-6


def test_no_more_than_a_block_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    pages = [unit(rng, size) for size in (10, 500, 90, 90, 7)]
    read: list[int] = []
    block = Rows.block

    def record(self: Rows, start: int, out: object) -> object:
        found = block(self, start, out)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    monkeypatch.setattr(Rows, "block", record)
    scorer(pages, block=100).scores([unit(rng, 5)])
    # 10 alone, as 500 more do not fit; 500 in five; then 90, and 90 + 7.
    assert read == [10, 100, 100, 100, 100, 100, 90, 97]


def test_no_query() -> None:
    assert scorer([A, B]).scores([]).shape == (0, 2)


# The pooled stage


def test_pooled_vectors_by_hand() -> None:
    stored = vectors((1, 0), (0, 1), (0, 3), (2, 0))
    offsets = np.array([0, 2, 4])
    pages = pooled_pages(stored, offsets, "float32")
    # Page 1: mean (.5, .5). Page 2: mean (1, 1.5), length sqrt(3.25) = 1.80278.
    assert pages == pytest.approx(vectors((0.70711, 0.70711), (0.5547, 0.83205)), abs=1e-5)
    # The query (1, 0), (1, 0) has the mean (1, 0).
    scores = pooled_scores([vectors((1, 0), (1, 0))], pages)
    assert scores == pytest.approx(np.array([[0.70711, 0.5547]]), abs=1e-5)


def test_pooled_pages_are_read_a_few_at_a_time() -> None:
    rng = np.random.default_rng(4)
    pages = [unit(rng, int(size)) for size in rng.integers(1, 9, 150)]
    found = pooled_pages(
        as_stored(np.concatenate(pages), "bfloat16"), offsets_of(pages), "bfloat16"
    )
    for page, own in zip(pages, found, strict=True):
        mean = as_float32(as_stored(page, "bfloat16"), "bfloat16").mean(axis=0)
        assert own == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


# The stage of centroids


def test_scores_of_centroids_by_hand() -> None:
    # (1, 0) leads to pages 0 and 2, (0, 1) to page 2, (-1, 0) to page 1.
    directions = vectors((1, 0), (0, 1), (-1, 0))
    pages = np.array([0, 2, 2, 1], dtype=np.int32)
    made = Centroids(directions, np.array([0, 2, 3, 4]), pages, 4)
    query = vectors((0.8, 0.6), (0.0, 1.0))
    # One probe: .8 by (1, 0), and 1 by (0, 1).
    assert made.scores([query], 1) == pytest.approx(vectors((0.8, 0, 1.8, 0)))
    # Two: page 2 keeps the larger of .8 and .6; (1, 0) and (0, 1) are 0 apart.
    assert made.scores([query], 2)[0, [0, 2]] == pytest.approx([0.8, 1.8])
    # More probes than centroids: products below 0 count as nothing.
    assert made.scores([query], 9) == pytest.approx(vectors((0.8, 0, 1.8, 0)))
    assert made.scores([], 1).shape == (0, 4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_each_vector_is_with_its_nearest_centroid(dtype: DType) -> None:
    rng = np.random.default_rng(6)
    pages = [unit(rng, int(size)) for size in rng.integers(1, 9, 700)]
    stored, offsets = as_stored(np.concatenate(pages), dtype), offsets_of(pages)
    made = build(Rows(stored, dtype, 1.01), offsets, CentroidSettings(count=32))
    assert np.linalg.norm(made.directions, axis=1) == pytest.approx(np.ones(32), abs=1e-5)
    expected: list[set[int]] = [set() for _ in range(32)]
    nearest = (as_float32(stored, dtype) @ made.directions.T).argmax(axis=1)
    for page, (low, high) in enumerate(pairwise(offsets)):
        for centroid in nearest[low:high]:
            expected[centroid].add(page)
    held = [made.pages[low:high].tolist() for low, high in pairwise(made.starts)]
    assert held == [sorted(some) for some in expected]


def test_centroids_find_the_groups_there_are() -> None:
    rng = np.random.default_rng(8)
    kinds = unit(rng, 12)
    page = [kinds[[number % 12]] + 0.02 * unit(rng, 1) for number in range(240)]
    stored = np.concatenate(page).astype(np.float32)
    made = build(Rows(stored, "float32", 1.1), np.arange(241), CentroidSettings(count=48))
    found = made.scores([kinds[[3]]], 48)[0]
    assert set(np.argsort(-found)[:20] % 12) == {3}


def test_no_more_centroids_than_vectors() -> None:
    stored = vectors((1, 0), (0, 1), (0, 1))
    made = build(Rows(stored, "float32", 1.0), np.array([0, 1, 3]), CentroidSettings(count=9))
    assert sorted(made.directions.tolist()) == [[0, 1], [1, 0]]  # one for both (0, 1)
    assert made.scores([vectors((0, 1))], 3)[0].tolist() == [0.0, 1.0]


def test_every_centroid_leads_somewhere() -> None:
    """Vectors that all pages have are drawn several times; one group alone gets them."""
    rng = np.random.default_rng(1)
    common = unit(rng, 5)
    pages = [np.concatenate([common, unit(rng, 10)]) for _ in range(50)]
    rows = Rows(np.concatenate(pages), "float32", 1.01)
    made = build(rows, offsets_of(pages), CentroidSettings(count=64))
    assert len(made.directions) < 64
    assert len(made.starts) == len(made.directions) + 1
    assert (np.diff(made.starts) > 0).all()
    for vector in common:
        assert made.scores([vector[None]], 1)[0] == pytest.approx(np.ones(50), abs=0.05)


def test_a_long_query_takes_no_more_memory_for_its_pages() -> None:
    rng = np.random.default_rng(2)
    made = Centroids(unit(rng, 2), np.array([0, 1, 2]), np.array([3, 5], dtype=np.int32), 100_000)
    query = unit(rng, 400)
    tracemalloc.start()
    try:
        (found,) = made.scores([query], 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * found.nbytes  # each vector with pages of its own would be 400 times
    best = np.maximum(query @ made.directions.T, 0)
    first = query @ made.directions.T @ np.array([1, -1]) > 0
    assert found[[3, 5]] == pytest.approx([best[first, 0].sum(), best[~first, 1].sum()], rel=1e-5)
    assert np.flatnonzero(found).tolist() == [3, 5]


def test_few_products_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    pages = [unit(rng, int(size)) for size in rng.integers(1, 9, 300)]
    rows, offsets = Rows(np.concatenate(pages), "float32", 1.01), offsets_of(pages)
    settings = CentroidSettings(count=16)
    whole, query = build(rows, offsets, settings), unit(rng, 300)
    sizes = []
    nearest = centroids._nearest

    def record(vectors: "Tensor", directions: "Tensor") -> "Tensor":
        sizes.append(len(vectors))
        return nearest(vectors, directions)

    monkeypatch.setattr(centroids, "_nearest", record)
    monkeypatch.setattr(centroids, "PRODUCTS", 16 * 100)
    parts = build(rows, offsets, settings)
    assert max(sizes) == 100
    assert parts.pages.tolist() == whole.pages.tolist()
    assert parts.starts.tolist() == whole.starts.tolist()
    in_parts = parts.scores([query], 2)
    monkeypatch.undo()
    assert in_parts == pytest.approx(whole.scores([query], 2), rel=1e-5)


@pytest.mark.parametrize(("vectors_", "count"), [(1, 16), (4, 32), (700_000, 8192), (10**7, 32768)])
def test_number_of_centroids(vectors_: int, count: int) -> None:
    assert default_count(vectors_) == count


def test_candidates_are_a_share_of_the_pages() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.7], [0.4, 0.3, 0.2, 0.1]], dtype=np.float32)
    owners = np.arange(4, dtype=np.int32)
    # Half of four pages: the second and fourth; the first and second.
    found = candidates(scores, 0.5, 1, owners)
    assert found.tolist() == [[False, True, False, True], [True, True, False, False]]


def test_candidates_hold_so_many_documents_at_least() -> None:
    scores = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]], dtype=np.float32)
    owners = np.array([0, 0, 0, 1, 2], dtype=np.int32)
    assert candidates(scores, 0.01, 1, owners).sum() == 1
    # Two documents: 2 pages are of one document, 4 are of two.
    assert candidates(scores, 0.01, 2, owners).tolist() == [[True, True, True, True, False]]
    assert candidates(scores, 0.01, 9, owners).all()
