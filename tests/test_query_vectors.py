"""Each query text is encoded once, however deep and by whichever backend it is searched."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrievers.base import PermanentSearchError
from retrievers.hybrid import HybridRetriever
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.query_vectors import QueryVectors
from retrievers.semantic import SemanticRetriever, SemanticSettings
from retrievers.semantic.encoder import Encoder
from rewards import RewardPanel, RewardSettings
from tests import semantic_engines
from tests.semantic_engines import Corpus, words

models, model = semantic_engines.models, semantic_engines.model  # fixtures


class Counting:
    """Encodes "ab" as [2, 2], and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        self.asked.append(texts)
        return np.array([[len(text)] * 2 for text in texts], dtype=np.float32)


def test_a_text_is_encoded_once_and_has_one_vector() -> None:
    encode = Counting()
    vectors = QueryVectors(encode, most=10)
    first = vectors.of(["a", "bcd", "a"])
    assert [one.tolist() for one in first] == [[1, 1], [3, 3], [1, 1]]
    assert first[0] is first[2]
    again = vectors.of(["ef", "bcd"])
    assert again[1] is first[1]
    assert encode.asked == [["a", "bcd"], ["ef"]]
    assert first[0].base is None  # it does not keep its batch in memory


def test_the_least_recently_used_go_first() -> None:
    encode = Counting()
    vectors = QueryVectors(encode, most=2)
    vectors.of(["a", "b"])
    vectors.of(["a"])
    vectors.of(["c"])  # b goes
    vectors.of(["a"])
    vectors.of(["b"])
    assert encode.asked == [["a", "b"], ["c"], ["b"]]


def test_their_bytes_are_bounded_too() -> None:
    encode = Counting()
    vectors = QueryVectors(encode, most=10, most_bytes=16)  # two vectors of two numbers
    vectors.of(["a", "b", "c"])
    vectors.of(["c", "b"])
    assert encode.asked == [["a", "b", "c"]]
    vectors.of(["a"])
    assert encode.asked[1:] == [["a"]]


def test_nothing_is_kept_with_room_for_none() -> None:
    encode = Counting()
    vectors = QueryVectors(encode, most=0)
    assert [one.tolist() for one in vectors.of(["a", "a"])] == [[1, 1], [1, 1]]
    vectors.of(["a"])
    assert encode.asked == [["a"], ["a"]]


def test_nan_is_named_and_not_kept() -> None:
    def encode(texts: list[str]) -> list[NDArray[np.float32]]:
        return [np.full(2, np.nan if text == "bad" else 1, dtype=np.float32) for text in texts]

    vectors = QueryVectors(encode, most=10)
    for _ in range(2):
        with pytest.raises(PermanentSearchError, match="query 'bad' holds NaN"):
            vectors.of(["good", "bad"])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every query that the model encodes."""
    seen: list[str] = []
    queries = Encoder.queries

    def record(self: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return queries(self, texts)

    monkeypatch.setattr(Encoder, "queries", record)
    return seen


@pytest.mark.parametrize("kind", ["ndcg", "rank"])
@pytest.mark.parametrize("chunks", [{}, {"chunk_words": 3}])
def test_rewards_and_an_evaluation_encode_each_text_once(
    model: str, asked: list[str], kind: str, chunks: dict[str, Any]
) -> None:
    corpus = Corpus(words(30, length=7))
    semantic = SemanticRetriever(corpus, SemanticSettings(model=model, device="cpu", **chunks))
    lexical = LexicalRetriever(corpus, LexicalSettings(**chunks))
    parts = {"lexical": lexical, "semantic": semantic}
    hybrid = HybridRetriever(corpus, parts=parts)
    assert hybrid.by_chunks == bool(chunks)
    backends = {"semantic": semantic, "hybrid": hybrid}
    settings = RewardSettings.model_validate(
        {"backends": list(backends), "kind": kind, "gain": True, "failure_penalty": 0.0}
    )
    asked.clear()
    texts = ["w1 w2", "w3", "w1 w2", "w4 w5 w6"]
    columns = {"query_id": ["q"] * 4, "query": ["w7"] * 4}
    relevant = [[{"id": "d1", "grade": 1.0}]] * 4
    for function in RewardPanel(backends, settings).functions:
        function(completions=texts, relevant=relevant, **columns)
    assert sorted(asked) == ["w1 w2", "w3", "w4 w5 w6", "w7"]
    for one in backends.values():
        one.search([*texts, "w7"], 100)
    assert len(asked) == 4


def test_page_images_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
    from retrievers.multimodal.encoder import PageEncoder
    from tests.page_engines import collection
    from tests.tiny_pages import save_page_model

    model = save_page_model(tmp_path / "model", "ColQwen2")
    settings = MultimodalSettings(model=str(model), device="cpu")
    seen: list[str] = []
    queries = PageEncoder.queries

    def record(self: PageEncoder, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        seen.extend(texts)
        return queries(self, texts)

    monkeypatch.setattr(PageEncoder, "queries", record)
    retriever = MultimodalRetriever(collection(["budget", "weather"]), settings)
    seen.clear()
    first = retriever.search(["budget", "snow"], 1)
    both = retriever.search(["snow", "budget"], 2)
    assert seen == ["budget", "snow"]
    assert [hits[:1] for hits in both] == first[::-1]
