"""What a reader of results is told about the index that was searched."""

import importlib.util
import json
from pathlib import Path

import pytest

from retrievers.base import Hit, Retriever
from retrievers.hybrid import HybridRetriever
from retrievers.lexical import LexicalRetriever, LexicalSettings
from tests import semantic_engines
from tests.semantic_engines import Corpus, build, words

models, model = semantic_engines.models, semantic_engines.model  # fixtures

LONG = "w1 " * 40  # of which the model reads 30 words
TEXTS = [LONG, "w2 w3", " ", "w4"]


class Plain(Retriever):
    """Finds nothing."""

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        return [[] for _ in queries]


def test_any_backend_has_its_size_if_it_knows_it() -> None:
    plain = Plain()
    assert plain.facts == {}
    plain.size = 7
    assert plain.facts == {"size": 7}


def test_semantic(model: str) -> None:
    # One of three documents with text is longer than the model reads.
    expected = {
        "size": 4,
        "dimension": 16,
        "native_dimension": 16,
        "blank": 1,
        "truncated": 1 / 3,
    }
    assert build(TEXTS, model).facts == expected
    cut = build(TEXTS, model, truncate_dim=4, chunk_tokens=20).facts
    # Forty words are two pieces of twenty.
    assert cut == expected | {"dimension": 4, "truncated": 0.0, "chunks": 4}


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')
def test_a_graph_says_what_it_misses(model: str, tmp_path: Path) -> None:
    for _ in range(2):  # built, then opened
        near = build(words(30), model, tmp_path / "near", approximate="hnsw")
        assert near.facts["overlap"] == near.overlap == pytest.approx(1, abs=0.02)
        assert near.facts["overlap_k"] == 10


def test_lexical() -> None:
    assert LexicalRetriever(Corpus(TEXTS)).facts == {"size": 4, "blank": 1}
    cut = LexicalRetriever(Corpus(TEXTS), LexicalSettings(chunk_words=20))
    # Forty words are two pieces, and a blank text is one without a token.
    assert cut.facts == {"size": 4, "blank": 1, "chunks": 5}


def test_hybrid_says_what_is_fused_and_of_what(model: str) -> None:
    whole = {"lexical": LexicalRetriever(Corpus(TEXTS)), "semantic": build(TEXTS, model)}
    cut = {
        "lexical": LexicalRetriever(Corpus(TEXTS), LexicalSettings(chunk_words=20)),
        "semantic": build(TEXTS, model, chunk_words=20),
    }
    for parts, fused in ((whole, "documents"), (cut, "pieces")):
        facts = HybridRetriever(Corpus(TEXTS), parts=parts).facts
        own = {"parts": {name: part.facts for name, part in parts.items()}}
        assert facts == {"fused": fused, **own}
        assert json.loads(json.dumps(facts)) == facts


def test_page_images(tmp_path: Path) -> None:
    from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
    from tests.page_engines import collection
    from tests.tiny_pages import save_page_model

    model = save_page_model(tmp_path / "model", "ColQwen2")
    settings = MultimodalSettings(model=str(model), device="cpu")
    retriever = MultimodalRetriever(collection(["budget", " ", "weather"]), settings)
    assert retriever.facts == {
        "size": 3,
        "family": "ColQwen2",
        "dimension": retriever.dimension,
        "pages": 2,
        "blank": 1,
        "blank_pages": retriever.blank_pages,
        "failed_pages": 0,
    }
    assert json.loads(json.dumps(retriever.facts)) == retriever.facts
