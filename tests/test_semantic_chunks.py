"""Search by meaning: documents that are longer than the model reads."""

from pathlib import Path

import pytest

from retrievers.chunks import Chunker
from retrievers.models import ModelError
from retrievers.semantic import SemanticSettings
from retrievers.semantic.encoder import Encoder
from tests import semantic_engines
from tests.semantic_engines import build, ids
from tests.tiny_encoder import TOKENS

models, model = semantic_engines.models, semantic_engines.model  # fixtures


def test_truncation_is_reported(model: str, caplog: pytest.LogCaptureFixture) -> None:
    long = " ".join(["w1"] * 600)
    retriever = build([f"{long} w2", f"{long} w3", "w4", "w1 " * (TOKENS - 2)], model)
    assert retriever.truncated == 0.5
    assert "50.0% of the documents are longer than the 32 tokens" in caplog.text
    assert "set chunk_tokens" in caplog.text
    assert len({hit.score for hit in retriever.search([long], 2)[0]}) == 1  # no telling them apart


def test_a_prompt_takes_room(models: Path) -> None:
    exact = "w1 " * (TOKENS - 2)
    assert build([exact], models / "prompted").truncated == 1.0
    assert build([exact], models / "prompted", document_prompt="").truncated == 0.0


def test_chunks_tell_long_documents_apart(model: str) -> None:
    long = " ".join(["w1"] * 600)
    retriever = build([f"{long} w2 w3", f"{long} w4 w5", "w6"], model, chunk_tokens=10)
    assert retriever.truncated == 0
    assert ids(retriever.search(["w4 w5"], 3)[0])[0] == "d1"
    assert ids(retriever.search(["w2 w3"], 3)[0])[0] == "d0"
    assert len(retriever.search(["w2"], 3)[0]) == 3  # no document twice


def test_chunk_depth(model: str) -> None:
    texts = ["w1 " * 40, "w2", "w3"]
    ten = build(texts, model, chunk_tokens=4, chunk_depth=10)
    assert ids(ten.search(["w1 w1 w1 w1"], 3)[0]) == ["d0"]  # all ten best pieces are its own
    assert len(build(texts, model, chunk_tokens=4).search(["w1 w1 w1 w1"], 3)[0]) == 3


def test_chunks_overlap_and_end_with_the_text(model: str) -> None:
    encoder = Encoder(SemanticSettings(model=model))
    text = "w1 w2, w3  w4 w5"  # the comma is a token
    assert Chunker(encoder.offsets, 3, 1)(text) == ["w1 w2,", ", w3  w4", "w4 w5"]
    assert Chunker(encoder.offsets, 6, 0)(text) == [text]
    assert Chunker(encoder.offsets, 5, 4)(text) == ["w1 w2, w3  w4", "w2, w3  w4 w5"]


def test_chunks_that_the_model_would_cut_are_refused(models: Path) -> None:
    # 32 tokens, less [CLS], [SEP], and "passage" and ":" of the prompt
    with pytest.raises(ModelError, match="chunk_tokens is 29, but the model reads 28 tokens"):
        build(["w1"], models / "prompted", chunk_tokens=29)
    assert build(["w1 " * 100], models / "prompted", chunk_tokens=28).truncated == 0
