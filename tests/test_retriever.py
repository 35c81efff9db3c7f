"""What every backend inherits: checks, positions, the cache, the tie rule."""

from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retrievers.base import (
    CacheInfo,
    Hit,
    MissingExtra,
    PermanentSearchError,
    Retriever,
    SearchError,
    SearchInputError,
    extra_version,
    import_extra,
    top_k,
)


class Stub(Retriever):
    """Finds "QUERY-0", "QUERY-1", ... and remembers what it was asked."""

    backend = "stub"
    fingerprint = "one"

    def __init__(self, size: int | None = 3, cache_size: int = 10, length: int = 3) -> None:
        super().__init__(cache_size=cache_size)
        self.size = size
        self.length = length
        self.calls: list[tuple[list[str], int]] = []
        self.error: Exception | None = None

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        self.calls.append((queries, k))
        if self.error:
            raise self.error
        return [[Hit(f"{query}-{n}", -float(n)) for n in range(self.length)] for query in queries]


def ids(results: list[list[Hit]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in results]


def test_positions_are_kept_and_equal_queries_searched_once() -> None:
    stub = Stub()
    assert ids(stub.search(["b", "a", "b"], 1)) == [["b-0"], ["a-0"], ["b-0"]]
    assert stub.calls == [(["b", "a"], 1)]


def test_eight_equal_queries_get_eight_lists_of_their_own() -> None:
    stub = Stub()
    results = stub.search(["a"] * 8, 2)
    results[0].clear()
    assert ids(results) == [[]] + [["a-0", "a-1"]] * 7
    assert ids(stub.search(["a"], 2)) == [["a-0", "a-1"]], "the cache must not be the caller's list"


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", "\u3000"])
def test_blank_queries_have_no_hits_and_are_not_searched(blank: str) -> None:
    stub = Stub()
    assert ids(stub.search([blank, "a", blank], 1)) == [[], ["a-0"], []]
    assert stub.search([blank], 1) == [[]]
    assert stub.calls == [(["a"], 1)]


def test_no_queries() -> None:
    stub = Stub()
    assert stub.search([], 3) == []
    assert stub.calls == []


def test_k_above_the_corpus_size_is_the_corpus_size() -> None:
    stub = Stub(size=2)
    assert ids(stub.search(["a"], 10)) == [["a-0", "a-1"]]
    assert stub.calls == [(["a"], 2)]


def test_without_a_known_size_k_stays() -> None:
    stub = Stub(size=None)
    stub.search(["a"], 10)
    assert stub.calls == [(["a"], 10)]


def test_longer_lists_are_cut_at_k() -> None:
    assert ids(Stub(size=None, length=9).search(["a"], 2)) == [["a-0", "a-1"]]


@pytest.mark.parametrize("k", [0, -1, True])
def test_k_below_one(k: int) -> None:
    with pytest.raises(SearchInputError, match=f"k is {k!r}"):
        Stub().search(["a"], k)


def test_k_must_be_an_integer() -> None:
    with pytest.raises(TypeError):
        Stub().search(["a"], 2.0)  # type: ignore[arg-type]
    assert len(Stub().search(["a"], np.int64(2))[0]) == 2  # type: ignore[arg-type]


def test_one_string_is_not_a_sequence_of_queries() -> None:
    with pytest.raises(TypeError, match="give a sequence"):
        Stub().search("budget", 3)


@pytest.mark.parametrize("wrong", [None, 5, b"a", ["a"]])
def test_a_query_that_is_no_string_is_named_by_position(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"queries\[1\]"):
        Stub().search(["a", wrong], 3)  # type: ignore[list-item]


def test_cache_counts() -> None:
    stub = Stub()
    stub.search(["a", "a", "b", ""], 2)  # a and b searched, the second a is a hit, "" is neither
    assert stub.cache_info() == CacheInfo(hits=1, misses=2, size=2)
    stub.search(["b", "c"], 2)
    assert stub.cache_info() == CacheInfo(hits=2, misses=3, size=3)
    assert [call[0] for call in stub.calls] == [["a", "b"], ["c"]]


def test_cache_key_is_fingerprint_k_and_exact_text() -> None:
    stub = Stub()
    for text, k in [("a", 1), ("a", 2), ("A", 1), ("a ", 1)]:
        stub.search([text], k)
    stub.fingerprint = "two"
    stub.search(["a"], 1)
    assert stub.cache_info() == CacheInfo(hits=0, misses=5, size=5)


def test_cache_is_bounded_and_the_least_recently_used_goes() -> None:
    stub = Stub(cache_size=2)
    for text in ["a", "b", "a", "c"]:  # b is the one not used for longest when c comes
        stub.search([text], 1)
    stub.search(["a", "c", "b"], 1)
    assert [call[0] for call in stub.calls] == [["a"], ["b"], ["c"], ["b"]]
    assert stub.cache_info().size == 2


def test_more_queries_than_the_cache_holds() -> None:
    for size in (0, 1):
        stub = Stub(cache_size=size)
        assert ids(stub.search(["a", "b", "c", "a"], 1)) == [["a-0"], ["b-0"], ["c-0"], ["a-0"]]
        assert stub.cache_info() == CacheInfo(hits=1, misses=3, size=size)


def test_a_failed_search_is_neither_kept_nor_counted() -> None:
    stub = Stub()
    stub.error = SearchError("503")
    with pytest.raises(SearchError, match="503"):
        stub.search(["a"], 1)
    assert stub.cache_info() == CacheInfo(0, 0, 0)
    stub.error = None
    assert ids(stub.search(["a"], 1)) == [["a-0"]]


def test_a_subclass_must_return_one_list_a_query() -> None:
    class Short(Stub):
        def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
            return super()._search(queries, k)[:-1]

    with pytest.raises(
        PermanentSearchError, match=r"Short\._search returned 1 lists for 2 queries"
    ):
        Short().search(["a", "b"], 1)


def test_a_permanent_error_is_a_search_error() -> None:
    assert issubclass(PermanentSearchError, SearchError)


def test_threads_share_one_cache() -> None:
    stub, start = Stub(), Barrier(4)
    results: list[list[list[Hit]]] = []

    def work() -> None:
        start.wait()
        results.extend(stub.search([f"q{n}", "same"], 1) for n in range(50))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200
    assert all(found[1] == [Hit("same-0", 0.0)] for found in results)
    info = stub.cache_info()
    assert info.hits + info.misses == 400
    assert info.size == 10
    assert sum(len(queries) for queries, _ in stub.calls) == info.misses


def test_top_k_breaks_ties_by_position() -> None:
    scores = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 0.0])
    assert top_k(scores, 1).tolist() == [1]
    assert top_k(scores, 4).tolist() == [1, 3, 0, 2]
    assert top_k(scores, 99).tolist() == [1, 3, 0, 2, 4, 5]


def test_top_k_of_equal_scores_is_corpus_order() -> None:
    assert top_k(np.zeros(10_000), 3).tolist() == [0, 1, 2]


def test_top_k_tells_scores_apart_that_are_equal_as_float32() -> None:
    assert top_k(np.array([1.0, 1.0 + 1e-15]), 1).tolist() == [1]


def test_top_k_of_eligible_positions_only() -> None:
    scores = np.array([9.0, -1.0, 9.0, 0.0])
    assert top_k(scores, 3, np.array([False, True, False, True])).tolist() == [3, 1]
    assert top_k(scores, 3, np.zeros(4, dtype=np.bool_)).tolist() == []


@pytest.mark.parametrize("levels", [2, 50, 10**9])
@pytest.mark.parametrize("size", [511, 512, 513, 5_000])
def test_top_k_of_many(size: int, levels: int) -> None:
    rng = np.random.default_rng(size)
    scores = rng.integers(levels, size=size) / 7.0
    for values in (scores, np.sort(scores), np.sort(scores)[::-1]):
        expected = np.lexsort((np.arange(size), -values))
        for k in (1, 10, 100, size - 1):
            assert top_k(values, k).tolist() == expected[:k].tolist()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("size", [3, 2_000])
def test_top_k_refuses_nan(k: int, size: int) -> None:
    scores = np.zeros(size)
    scores[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        top_k(scores, k)
    assert top_k(scores, k, ~np.isnan(scores)).tolist() == [0, 1, 2][: min(k, size - 1)]


@given(
    arrays.arrays(np.float64, st.integers(0, 40), elements=st.sampled_from([-1.5, 0.0, -0.0, 2.0])),
    st.integers(1, 45),
    st.randoms(use_true_random=False),
)
def test_top_k_equals_a_plain_sort(scores: "np.typing.NDArray[np.float64]", k: int, rng) -> None:  # type: ignore[no-untyped-def]
    eligible = np.array([rng.random() < 0.7 for _ in scores], dtype=np.bool_)
    everything = sorted(range(len(scores)), key=lambda position: (-scores[position], position))
    assert top_k(scores, k).tolist() == everything[:k]
    assert top_k(scores, k, eligible).tolist() == [p for p in everything if eligible[p]][:k]


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[text\]"'):
        import_extra("no_such_package_here", "text")
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[text\]"'):
        extra_version("no-such-package-here", "text")
