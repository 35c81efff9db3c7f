"""Search by meaning: what is found, exactly and in which order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from retrievers.chunks import joined
from retrievers.semantic import SemanticRetriever, SemanticSettings, vectors
from retrievers.terms import EmptyCorpusError
from tests import semantic_engines
from tests.semantic_engines import Corpus, build, ids, words

# Fixtures.
models, model = semantic_engines.models, semantic_engines.model
read = semantic_engines.read


def truth(retriever: SemanticRetriever, queries: Sequence[str], k: int) -> list[list[str]]:
    """The best documents by float64 scores of all stored vectors, computed in one piece."""
    decision = retriever._finder._decision
    rows = decision.rows.take(np.arange(len(decision.rows)))
    best = []
    for query in retriever._encoder.queries(queries).astype(np.float64):
        if decision.similarity == "euclidean":
            score = -np.sqrt(((rows - query) ** 2).sum(1))
        elif decision.similarity == "manhattan":
            score = -np.abs(rows - query).sum(1)
        else:
            score = (rows * query).sum(1)
        order = np.argsort(-score, kind="stable")
        owners = list(dict.fromkeys(decision.owners[order].tolist()))
        best.append([f"d{owner}" for owner in owners[:k]])
    return best


def test_a_text_finds_itself_first(model: str) -> None:
    texts = words(50)
    hits = build(texts, model).search(texts, 3)
    assert [ids(found)[0] for found in hits] == [f"d{n}" for n in range(50)]
    assert all(found[0].score == pytest.approx(1, abs=1e-3) for found in hits)
    assert all(len(found) == 3 for found in hits)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_exact_search_is_exact(
    models: Path, similarity: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrievers.semantic.exact.BLOCK", 16)
    monkeypatch.setattr("retrievers.semantic.candidates.LEAST", 8)
    monkeypatch.setattr("retrievers.semantic.exact.QUERIES", 3)
    texts = words(120) + words(30)  # the last thirty are equal to the first
    retriever = build(texts, models / "dot", similarity_fn_name=similarity, dtype=dtype)
    queries = words(7, seed=1) + texts[:2]
    for k in (1, 5, 150):
        assert [ids(found) for found in retriever.search(queries, k)] == truth(
            retriever, queries, k
        )


@pytest.mark.parametrize("depth", [None, 4])
def test_exact_search_of_chunks_is_exact(
    model: str, depth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrievers.semantic.exact.BLOCK", 16)
    monkeypatch.setattr("retrievers.semantic.candidates.LEAST", 8)
    texts = words(40, length=17) + words(10, length=3)
    retriever = build(texts, model, chunk_tokens=5, chunk_overlap=2, chunk_depth=depth)
    queries = words(6, seed=1)
    found = [ids(hits) for hits in retriever.search(queries, 5)]
    if depth is None:
        assert found == truth(retriever, queries, 5)
        return
    for got, everything in zip(found, truth(retriever, queries, 50), strict=True):
        assert 1 <= len(got) <= depth  # four pieces belong to at most four documents
        assert got == everything[: len(got)]


def test_ties_are_in_corpus_order(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrievers.semantic.exact.BLOCK", 7)
    texts = ["w1 w2", "w3"] * 40
    retriever = build(texts, model)
    (hits,) = retriever.search(["w1 w2"], 50)
    assert ids(hits) == [f"d{n}" for n in [*range(0, 80, 2), *range(1, 21, 2)]]
    assert len({hit.score for hit in hits}) == 2


def test_k_above_the_corpus_size_and_equal_queries(model: str) -> None:
    hits = build(["w1", "w2"], model).search(["w1"] * 8, 10)
    assert len(hits) == 8
    assert all(ids(found) == ["d0", "d1"] for found in hits)


def test_blank_queries_and_documents(model: str) -> None:
    retriever = build(["w1", " \n", "w2", ""], model)
    assert retriever.blank == 2
    empty, blank, found = retriever.search(["", "  ", "w2"], 4)
    assert empty == blank == []
    assert ids(found) == ["d2", "d0"]


def test_half_a_surrogate_pair(model: str) -> None:
    assert joined("\ud800", "예산") == "?\n예산"
    assert len(build(["w1 \ud800", "w2"], model).search(["w1 \udfff"], 2)[0]) == 2


def test_title_and_text(model: str, read: list[str]) -> None:
    assert joined("A", "b") == "A\nb"
    assert joined("A", " ") == "A"
    assert joined("", "b") == "b"
    SemanticRetriever(Corpus(["w1"], title="w2"), SemanticSettings(model=model))
    assert "w2 w1" in read


@pytest.mark.parametrize("texts", [[], ["", "  "]])
def test_nothing_to_find(model: str, tmp_path: Path, texts: list[str]) -> None:
    for place in (None, tmp_path / "semantic"):
        with pytest.raises(EmptyCorpusError, match="no document to find"):
            build(texts, model, place)


def test_a_shard_of_blank_documents(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SHARD", 2)
    retriever = build(["w1", "w2", "", " ", "w3"], model, tmp_path / "semantic")
    assert retriever.blank == 2
    assert ids(retriever.search(["w3"], 1)[0]) == ["d4"]
