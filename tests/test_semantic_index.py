"""Search by meaning: an index is opened, refused, or built on where a build was killed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.index import IndexDamaged, IndexMismatch
from retrievers.semantic import vectors
from retrievers.semantic.encoder import Encoder
from tests import semantic_engines
from tests.open_files import few_open_files
from tests.semantic_engines import build, ids, texts_read, words
from tests.tiny_encoder import save_encoder

# Fixtures.
models, model = semantic_engines.models, semantic_engines.model
read = semantic_engines.read


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
