"""Search by meaning: the model's own prompts, dimension and similarity, and settings."""

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers import build_retriever
from retrievers.base import PermanentSearchError
from retrievers.models import ModelError
from retrievers.queries import Query
from retrievers.semantic import SemanticSettings
from retrievers.semantic.vectors import VectorError
from rewards import SearchReward
from rewriter.config import load
from rewriter.evaluation import evaluate
from rewriter.records import Rewrite
from tests import semantic_engines
from tests.semantic_engines import Corpus, build, ids, texts_read, words
from tests.tiny_encoder import DIMENSION, save_encoder

# Fixtures.
models, model = semantic_engines.models, semantic_engines.model
read = semantic_engines.read


# ---- the model


def test_prompts_once_in_reward_and_evaluation(models: Path, read: list[str]) -> None:
    retriever = build(["w1", "w2"], models / "prompted")
    assert sorted(texts_read(read)) == ["passage : w1", "passage : w2"]
    reward = SearchReward(retriever)
    relevant = [[{"id": "d0", "grade": 1.0}]]
    reward(completions=["w1"], query_id=["q"], query=["raw"], relevant=relevant)
    assert texts_read(read) == ["query : w1"]
    rewrites = {"q": Rewrite("w1")}
    list(evaluate("trained", rewrites, [Query("q", "w9")], {"q": {"d0": 1}}, {"s": retriever}))
    assert texts_read(read) == ["query : w1"]


@pytest.mark.parametrize(
    ("chosen", "query", "document"),
    [
        ({}, "query : w1", "passage : w2"),
        ({"query_prompt": "", "document_prompt": ""}, "w1", "w2"),
        ({"query_prompt": "title: "}, "title : w1", "passage : w2"),
        (
            {"query_prompt_name": "other", "document_prompt_name": "query"},
            "title : w1",
            "query : w2",
        ),
    ],
)
def test_prompts_of_the_configuration(
    models: Path, read: list[str], chosen: dict[str, Any], query: str, document: str
) -> None:
    retriever = build(["w2"], models / "prompted", **chosen)
    retriever.search(["w1"], 1)
    assert texts_read(read) == [document, query]


def test_a_prompt_that_the_model_does_not_have(models: Path) -> None:
    with pytest.raises(ModelError, match=r"no prompt named 'nil'; there are: document, other"):
        build(["w1"], models / "prompted", query_prompt_name="nil")


def test_the_dimension_is_the_model_s_unless_asked_otherwise(models: Path, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "short")
    declared = folder / "config_sentence_transformers.json"
    declared.write_text(json.dumps(json.loads(declared.read_text()) | {"truncate_dim": 8}))
    assert build(["w1"], folder).dimension == DIMENSION
    short = build(words(20), folder, truncate_dim=8)
    assert short.dimension == 8
    assert ids(short.search([words(20)[3]], 1)[0]) == ["d3"]
    assert short.fingerprint != build(words(20), folder).fingerprint
    with pytest.raises(ModelError, match=r"truncate_dim is 17, but .* have 16 dimensions"):
        build(["w1"], folder, truncate_dim=17)


def test_normalised_as_the_model_declares(models: Path) -> None:
    def lengths(model: Path, **chosen: Any) -> NDArray[np.float64]:
        rows = build(words(9), model, dtype="float32", **chosen)._finder._decision.rows
        found: NDArray[np.float64] = np.linalg.norm(rows.take(np.arange(9)), axis=1)
        return found

    assert lengths(models / "plain") == pytest.approx(1, abs=1e-6)
    assert (lengths(models / "dot") > 2).all()
    assert lengths(models / "dot", similarity_fn_name="cosine") == pytest.approx(1, abs=1e-6)


def test_vectors_do_not_depend_on_the_batch(model: str) -> None:
    texts = [text for length in range(1, 21) for text in words(2, length)]
    one, eight = (build(texts, model, batch_size=size, dtype="float32") for size in (1, 8))
    first, second = (r._finder._decision.rows.take(np.arange(40)) for r in (one, eight))
    assert np.abs(first - second).max() < 1e-4
    queries = words(10, seed=2)
    pairs = zip(one.search(queries, 3), eight.search(queries, 3), strict=True)
    assert all(ids(left) == ids(right) for left, right in pairs)


def test_nan_names_the_document_and_the_query(models: Path, tmp_path: Path) -> None:
    texts = ["w1", "w2 w3 w4", "w1 w13", "w5"]
    with pytest.raises(VectorError, match="the vector of document 'd2' holds NaN"):
        build(texts, models / "poisoned", tmp_path / "semantic")
    with pytest.raises(PermanentSearchError, match="query 'w13 w2' holds NaN"):
        build(["w1"], models / "poisoned").search(["w1", "w13 w2"], 1)


def test_too_large_for_float16(models: Path) -> None:
    with pytest.raises(VectorError, match="'d0' holds NaN, or numbers too large for float16"):
        build(["w1"], models / "huge")
    build(["w1"], models / "huge", dtype="bfloat16")


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot be loaded"):
        build(["w1"], folder)


def test_a_folder_is_loaded_without_the_network_and_with_the_same_random_numbers(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    calls: list[Any] = []

    def refuse(*address: Any) -> None:
        calls.append(address)  # the hub's client may swallow the error
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    state = torch.random.get_rng_state()
    build(["w1"], models / "plain").search(["w1"], 1)
    assert calls == []
    assert torch.equal(state, torch.random.get_rng_state())


def test_weights_that_a_checkpoint_lacks_make_no_other_model(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = save_encoder(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    kept = {name: values for name, values in weights.items() if "pooler" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    assert build(["w1"], folder).fingerprint == build(["w1"], folder).fingerprint


# ---- settings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"query_prompt": "a", "query_prompt_name": "b"}, "query_prompt or query_prompt_name"),
        ({"chunk_overlap": 3}, "need chunk_tokens"),
        ({"chunk_depth": 3}, "need chunk_tokens"),
        ({"chunk_tokens": 3, "chunk_overlap": 3}, "cannot share all"),
        ({"approximate": "hnsw", "similarity_fn_name": "manhattan"}, "no manhattan"),
        ({"approximate": "ivf"}, "hnsw"),
        ({"hnsw": {"ef_search": 64}}, 'hnsw has an effect with approximate "hnsw" only'),
        ({"dtype": "int8"}, "float16"),
        ({"modle": "x"}, "modle"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        SemanticSettings.model_validate(given)


def test_the_demo_takes_it_with_one_word() -> None:
    config = load("configs/demo.yaml", ["--reward.backends", "semantic"])
    assert list(config.reward.backends) == ["semantic"]
    assert config.retriever_settings("semantic") == SemanticSettings()


def test_it_is_built_by_name(model: str) -> None:
    retriever = build_retriever("semantic", SemanticSettings(model=model), Corpus(["w1"]))
    assert retriever.backend == "semantic"
