"""Search by meaning: approximate search by a graph."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import MissingExtra
from retrievers.index import IndexMismatch
from retrievers.semantic.overlap import probes
from tests import semantic_engines
from tests.semantic_engines import build, words

models, model = semantic_engines.models, semantic_engines.model  # fixtures
FAISS = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')


@FAISS
@pytest.mark.parametrize("chosen", [{}, {"chunk_tokens": 3}, {"chunk_tokens": 3, "chunk_depth": 6}])
def test_the_graph_finds_what_exact_search_finds(
    model: str, tmp_path: Path, chosen: dict[str, Any]
) -> None:
    texts, queries = words(300, length=7), words(20, seed=4)
    exact = build(texts, model, tmp_path / "semantic", **chosen)
    near = build(texts, model, tmp_path / "semantic", approximate="hnsw", **chosen)  # same vectors
    assert near.search(queries, 5) == exact.search(queries, 5)
    assert near.overlap == pytest.approx(1, abs=0.02)
    assert exact.overlap is None
    assert near.fingerprint != exact.fingerprint
    opened = build(texts, model, tmp_path / "semantic", approximate="hnsw", **chosen)
    assert opened.search(queries, 5) == near.search(queries, 5)
    assert opened.overlap == near.overlap
    with pytest.raises(IndexMismatch, match=r"hnsw.neighbours: there 32, asked for 8"):
        build(
            texts,
            model,
            tmp_path / "semantic",
            approximate="hnsw",
            hnsw={"neighbours": 8},
            **chosen,
        )


@FAISS
def test_a_poor_graph_says_so(model: str) -> None:
    poor = {"neighbours": 2, "ef_construction": 1, "ef_search": 1}
    retriever = build(words(800), model, approximate="hnsw", hnsw=poor)
    assert retriever.overlap is not None
    assert retriever.overlap < 0.9


def test_the_texts_of_a_graph_s_queries_are_not_all_in_memory() -> None:
    class Text(str):
        """A text that counts how many of its kind there are."""

        def __new__(cls, content: str) -> "Text":
            alive[0] += 1
            most[0] = max(most[0], alive[0])
            return super().__new__(cls, content)

        def __del__(self) -> None:
            alive[0] -= 1

    alive, most = [0], [0]
    texts = words(500, length=12)
    found = probes(lambda: map(Text, ["", *texts]), 6)
    assert most[0] < 10
    assert len(set(found)) == 6
    assert all(any(query in text for text in texts) for query in found)
    assert all(len(query.split()) == 8 for query in found)
    assert len(probes(lambda: ["w1", "", "w2"], 6)) == 2


def test_without_faiss(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("retrievers.base.version", missing)
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[faiss\]"'):
        build(["w1"], model, approximate="hnsw")
