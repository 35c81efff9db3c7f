"""Search of page images: an index is opened, refused, or built on where a build was killed."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from retrievers.index import IndexDamaged, IndexMismatch
from retrievers.multimodal import vectors
from retrievers.multimodal.encoder import PageEncoder
from tests import page_engines
from tests.open_files import few_open_files
from tests.page_engines import TEXTS, build, ids, page, paged
from tests.tiny_pages import save_page_model

models, model, read = page_engines.models, page_engines.model, page_engines.read  # fixtures


def test_an_index_is_opened_without_encoding(model: str, tmp_path: Path, read: list[int]) -> None:
    queries = ["budget", "trains"]
    built = build(TEXTS, model, tmp_path / "multimodal")
    assert sum(read) == built.pages > 4  # the third text has several pages
    read.clear()
    opened = build(TEXTS, model, tmp_path / "multimodal")
    assert read == []
    assert opened.search(queries, 4) == built.search(queries, 4)
    assert opened.search(queries, 4) == build(TEXTS, model).search(queries, 4)
    assert opened.fingerprint == built.fingerprint
    assert not opened._vectors.values.flags.owndata  # mapped, not read


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"max_image_tokens": 20}, "max_image_tokens"),
        ({"pages": {"style": {"margin": 4}}}, r"pages\.style\.margin"),
        ({"pages": {"style": {"font": "DejaVuSans"}}}, r"pages\.style\.font"),
        ({"dtype": "float16"}, "dtype"),
        ({"model_dtype": "bfloat16"}, "model_dtype"),
    ],
)
def test_an_index_of_other_settings_is_refused(
    changed: dict[str, Any], named: str, model: str, tmp_path: Path
) -> None:
    build(TEXTS, model, tmp_path / "multimodal")
    with pytest.raises(IndexMismatch, match=named):
        build(TEXTS, model, tmp_path / "multimodal", **changed)


def test_an_index_of_other_documents_pages_or_weights_is_refused(
    models: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(models / "ColQwen2", tmp_path / "model")
    documents = paged([[page("one")], [page("two")]], tmp_path)
    build(documents, model, tmp_path / "multimodal")
    with pytest.raises(IndexMismatch, match="documents"):
        build(TEXTS, model, tmp_path / "multimodal")
    with pytest.raises(IndexMismatch, match=r"pages\.dpi"):
        build(documents, model, tmp_path / "multimodal", pages={"dpi": 100})
    page("three").save(tmp_path / "1-0.png")
    with pytest.raises(IndexMismatch, match=r"pages\.sha256"):
        build(documents, model, tmp_path / "multimodal")
    page("two").save(tmp_path / "1-0.png")
    build(documents, model, tmp_path / "multimodal")
    save_page_model(model, "ColQwen2", seed=1)
    with pytest.raises(IndexMismatch, match="content"):
        build(documents, model, tmp_path / "multimodal")


def test_the_fingerprint_knows_how_is_searched(model: str, tmp_path: Path) -> None:
    chosen: list[dict[str, Any]] = [
        {},
        {"scoring": "pooled"},
        {"candidates": 0.5},
        {"candidates": 0.6},
    ]
    # One index serves all of them.
    made = [build(TEXTS, model, tmp_path / "multimodal", **settings) for settings in chosen]
    assert len({retriever.fingerprint for retriever in made}) == len(made)
    # What changes nothing but the effort is no part of it.
    same = build(TEXTS, model, tmp_path / "multimodal", batch_size=3, block_vectors=64)
    assert same.fingerprint == made[0].fingerprint


class Killed(Exception):
    """As if the process ended."""


def test_a_killed_build_goes_on_where_it_was(
    model: str, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SHARD", 3)
    texts = [f"page number {number}" for number in range(11)]
    folder = tmp_path / "multimodal"
    encoded = PageEncoder.pages

    def dying(self: PageEncoder, images: Sequence[Image.Image]) -> Any:
        if sum(read) >= 7:
            raise Killed
        return encoded(self, images)

    with monkeypatch.context() as patch:
        patch.setattr(PageEncoder, "pages", dying)
        with pytest.raises(Killed):
            build(texts, model, folder, batch_size=1)
    assert not folder.exists()
    shards = sorted((tmp_path / ".multimodal.shards").glob("0*"))
    assert len(shards) == 2  # of three documents each; one document of the third was lost
    damaged = shards[0] / "values.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    read.clear()
    retriever = build(texts, model, folder, batch_size=1)
    # The damaged shard is made again, never read: 3 of it, and 5 that had not been made.
    assert sum(read) == 8
    assert not (tmp_path / ".multimodal.shards").exists()
    queries = ["page number 5", "number"]
    assert retriever.search(queries, 11) == build(texts, model, batch_size=1).search(queries, 11)


def test_a_build_needs_few_open_files(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"page number {number}" for number in range(12)]
    expected = build(texts, model).search(["number 7"], 12)
    monkeypatch.setattr(vectors, "SHARD", 1)
    with few_open_files(16):
        made = build(texts, model, tmp_path / "multimodal")
    assert ids(made.search(["number 7"], 12)[0]) == ids(expected[0])


def test_a_damaged_index_is_refused(model: str, tmp_path: Path) -> None:
    build(TEXTS, model, tmp_path / "multimodal")
    values = tmp_path / "multimodal" / "values.npy"
    values.write_bytes(values.read_bytes()[:-4])
    with pytest.raises(IndexDamaged, match=r"values\.npy has .* bytes, not"):
        build(TEXTS, model, tmp_path / "multimodal")
