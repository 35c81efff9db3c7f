"""Search of page images: any family of colpali-engine, loaded whole, resumable, pages grouped."""

import json
import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError

from retrievers import build_retriever
from retrievers import models as model_names
from retrievers.base import Hit, PermanentSearchError
from retrievers.collection import Collection, Document
from retrievers.index import IndexDamaged, IndexMismatch
from retrievers.models import ModelError, resolve
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings, vectors
from retrievers.multimodal.encoder import PageEncoder
from retrievers.multimodal.families import family_name
from retrievers.pages import PageSettings, PageStyle, render_pages
from retrievers.semantic.vectors import VectorError
from retrievers.terms import EmptyCorpusError
from rewriter.config import load
from tests.open_files import few_open_files
from tests.tiny_pages import FAMILIES, save_page_model

TEXTS = (
    "the budget of the city for the coming year",
    "snow in the mountains, and how the weather was foretold",
    "a timetable of trains " * 60,
    "rules for the public library",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of tiny models, by the names of their families."""
    folder = tmp_path_factory.mktemp("models")
    for family in FAMILIES:
        save_page_model(folder / family, family)
    return folder


@pytest.fixture
def model(models: Path) -> str:
    return str(models / "ColQwen2")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pages each call of the model was given."""
    seen: list[int] = []
    pages = PageEncoder.pages

    def record(self: PageEncoder, images: Sequence[Image.Image]) -> Any:
        seen.append(len(images))
        return pages(self, images)

    monkeypatch.setattr(PageEncoder, "pages", record)
    return seen


def collection(texts: Sequence[str]) -> Collection:
    return Collection.from_documents(
        "t", [Document(f"d{number}", "", text) for number, text in enumerate(texts)]
    )


def build(
    texts: Sequence[str] | Collection,
    model: str | Path,
    index_dir: Path | None = None,
    **chosen: Any,
) -> MultimodalRetriever:
    given = {"model": str(model), "device": "cpu", "dtype": "float32", **chosen}
    settings = MultimodalSettings.model_validate(given)
    made = texts if isinstance(texts, Collection) else collection(texts)
    return MultimodalRetriever(made, settings, index_dir, cache_size=0)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def paged(pages: Sequence[Sequence[Image.Image]], folder: Path) -> Collection:
    """A collection with images: documents d0, d1, … of these pages."""
    cells = []
    for document, images in enumerate(pages):
        paths = [folder / f"{document}-{number}.png" for number in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            image.save(path)
        cells.append([str(path) for path in paths])
    names = [f"d{number}" for number in range(len(pages))]
    table = {
        "id": names,
        "text": [""] * len(names),
        "images": pa.array(cells, pa.list_(pa.string())),
    }
    return Collection("pages", pa.table(table))


def page(text: str) -> Image.Image:
    return render_pages("", text, PageStyle(width=160))[0]


def edit_weights(folder: Path, rename: Callable[[str], str | None]) -> None:
    """Rename the weights of a saved model; None drops one."""
    from safetensors.torch import load_file, save_file

    (file,) = folder.glob("*model.safetensors")
    kept = {rename(name): weights for name, weights in load_file(file).items()}
    save_file({name: w for name, w in kept.items() if name is not None}, file, {"format": "pt"})


# Models


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_from_its_own_configuration(family: str, models: Path) -> None:
    retriever = build(TEXTS, models / family)
    assert retriever.family == family
    found = retriever.search(["the budget of the city"], 4)
    assert sorted(ids(found[0])) == ["d0", "d1", "d2", "d3"]
    assert all(np.isfinite(hit.score) for hit in found[0])
    assert len({hit.score for hit in found[0]}) == 4  # it tells pages apart
    # Loaded again, it is the same model.
    assert build(TEXTS, models / family).search(["the budget of the city"], 4) == found


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_colpali_engine_for_each_page_alone(family: str, models: Path) -> None:
    import colpali_engine.models as engine
    import torch

    name = {"ColQwen2_5": "ColQwen2_5_Processor"}.get(family, f"{family}Processor")
    network = getattr(engine, family).from_pretrained(models / family).eval()
    processor = getattr(engine, name).from_pretrained(models / family)
    query = "the budget of the city"
    found = {hit.id: hit.score for hit in build(TEXTS, models / family).search([query], 4)[0]}
    with torch.inference_mode():
        asked = network(**processor.process_queries([query]))
        for number, text in enumerate(TEXTS):
            pages = render_pages("", text, PageStyle())
            alone = [network(**processor.process_images([image])) for image in pages]
            scores = [float(processor.score(list(asked), list(one))[0, 0]) for one in alone]
            assert found[f"d{number}"] == pytest.approx(max(scores), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_page_s_vectors_do_not_depend_on_the_batch(family: str, models: Path) -> None:
    encoder = PageEncoder(MultimodalSettings(model=str(models / family), device="cpu"))
    images = [page("one"), page("a longer page " * 20), page("three")]
    together = encoder.pages(images)
    for image, rows in zip(images, together, strict=True):
        (alone,) = encoder.pages([image])
        assert alone.shape == rows.shape
        assert np.abs(alone - rows).max() < 1e-4
    queries = ["budget", "a much longer query about the weather in the mountains"]
    for query, rows in zip(queries, encoder.queries(queries), strict=True):
        assert np.abs(encoder.queries([query])[0] - rows).max() < 1e-4


def test_the_configuration_decides(models: Path, tmp_path: Path) -> None:
    assert family_name({"architectures": ["ColQwen2"], "model_type": "x"}, "m") == "ColQwen2"
    assert family_name({"architectures": None, "model_type": "paligemma"}, "m") == "ColPali"
    # The kind of a plain vision model: its class is known, and its projection will be missing.
    plain = {"architectures": ["Qwen2VLModel"], "model_type": "qwen2_vl"}
    assert family_name(plain, "m") == "ColQwen2"
    shutil.copytree(models / "ColQwen2", tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config |= {"architectures": ["BertModel"], "model_type": "bert"}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"is BertModel, model_type 'bert'; .*ColPali \(paligemma"):
        build(TEXTS, tmp_path / "m")


@pytest.mark.parametrize(
    ("family", "projection"), [("ColQwen2", "custom_text_proj"), ("ColIdefics3", "linear")]
)
def test_weights_that_do_not_fit_are_named(
    family: str, projection: str, models: Path, tmp_path: Path
) -> None:
    shutil.copytree(models / family, tmp_path / "renamed")
    key = f"{projection}.weight"
    edit_weights(tmp_path / "renamed", lambda name: "other.weight" if name == key else name)
    with pytest.raises(ModelError, match=rf"missing: {key}; unexpected: other\.weight"):
        build(TEXTS, tmp_path / "renamed")
    shutil.copytree(models / family, tmp_path / "shorter")
    edit_weights(tmp_path / "shorter", lambda name: None if name == key else name)
    with pytest.raises(ModelError, match=rf"weights do not fit its class; missing: {key}"):
        build(TEXTS, tmp_path / "shorter")


def test_a_head_that_is_not_used_may_be_there(models: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(models / "ColQwen2", tmp_path / "m")
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["lm_head.weight"] = weights["custom_text_proj.bias"].clone()
    save_file(weights, file, {"format": "pt"})
    queries = ["budget"]
    expected = build(TEXTS, models / "ColQwen2").search(queries, 2)
    assert build(TEXTS, folder).search(queries, 2) == expected


def test_a_folder_that_cannot_be_loaded(models: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        build(TEXTS, tmp_path / "nothing")
    folder = shutil.copytree(models / "ColQwen2", tmp_path / "m")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        build(TEXTS, folder)


def test_no_network_and_the_same_random_numbers(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = torch.random.get_rng_state()
    build(TEXTS, model)
    assert torch.equal(torch.random.get_rng_state(), before)


def save_adapter(base: Path, folder: Path) -> Path:
    """A LoRA adapter over a saved model, with weights that change what it computes."""
    import torch
    from colpali_engine.models import ColQwen2
    from peft import LoraConfig, get_peft_model

    network = ColQwen2.from_pretrained(base)
    adapted = get_peft_model(
        network, LoraConfig(r=4, target_modules=["q_proj", "custom_text_proj"])
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for name, weights in adapted.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weights)
    adapted.save_pretrained(folder)
    for file in (*base.glob("tokenizer*"), *base.glob("*processor*")):
        shutil.copy(file, folder)
    return folder


def test_an_adapter_is_loaded_over_its_base(models: Path, tmp_path: Path) -> None:
    import torch
    from colpali_engine.models import ColQwen2, ColQwen2Processor
    from peft import PeftModel

    base = models / "ColQwen2"
    folder = save_adapter(base, tmp_path / "adapter")
    encoder = PageEncoder(MultimodalSettings(model=str(folder), device="cpu"))
    network = PeftModel.from_pretrained(ColQwen2.from_pretrained(base), str(folder)).eval()
    with torch.inference_mode():
        batch = ColQwen2Processor.from_pretrained(base).process_images([page("one")])
        expected = network(**batch)[0].numpy()
    (found,) = encoder.pages([page("one")])
    assert np.abs(found - expected).max() < 1e-5
    plain = PageEncoder(MultimodalSettings(model=str(base), device="cpu"))
    assert np.abs(found - plain.pages([page("one")])[0]).max() > 0.01
    assert encoder.identity()["content"] != plain.identity()["content"]


def test_an_adapter_that_does_not_fit_is_an_error(models: Path, tmp_path: Path) -> None:
    folder = save_adapter(models / "ColQwen2", tmp_path / "adapter")
    edit_weights(folder, lambda name: name.replace("custom_text_proj", "projection"))
    with pytest.raises(ModelError, match=r"missing: .*custom_text_proj.*unexpected: .*projection"):
        build(TEXTS, folder)


def test_a_bundled_model_by_its_name(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_names, "BUNDLED_FOLDER", tmp_path)
    with pytest.raises(ModelError, match="not among the bundled models: none"):
        resolve("bundled:page-reader")
    shutil.copytree(models / "ColQwen2", tmp_path / "page_reader")
    assert resolve("bundled:page-reader") == str(tmp_path / "page_reader")
    with pytest.raises(ModelError, match="the bundled models: bundled:page-reader"):
        resolve("bundled:page_reader")
    expected = build(TEXTS, models / "ColQwen2").search(["budget"], 2)
    assert build(TEXTS, "bundled:page-reader").search(["budget"], 2) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cap_of_image_tokens(family: str, models: Path) -> None:
    import torch

    image = Image.new("RGB", (1892, 2834), "white")
    image.paste("black", (100, 100, 500, 300))
    counts = []
    for cap in (None, 40, 20):
        encoder = PageEncoder(
            MultimodalSettings(model=str(models / family), device="cpu", max_image_tokens=cap)
        )
        batch = encoder._processor.process_images([image])
        counts.append(int(torch.sum(batch["input_ids"] == encoder._processor.image_token_id)))
        (rows,) = encoder.pages([image])
        assert np.isfinite(rows).all()
    assert counts[1] <= 40
    assert counts[2] <= 20
    if family != "ColPali":  # which spends 16 on every image
        assert counts[0] > counts[1] > counts[2] > 1


@pytest.mark.parametrize("family", ["ColPali", "ColIdefics3"])
def test_a_cap_that_a_model_cannot_keep(family: str, models: Path) -> None:
    with pytest.raises(ModelError, match="max_image_tokens is 3, and this model spends"):
        build(TEXTS, models / family, max_image_tokens=3)


# Documents and pages


def test_a_document_is_found_by_its_best_page(model: str, tmp_path: Path) -> None:
    pages = [page(f"page {number} about {number * 37}") for number in range(5)]
    documents = paged([pages[:2], pages[2:3], pages[3:]], tmp_path)
    by_page = build(documents, model, unit="page")
    by_document = build(documents, model)
    assert by_page.size == 5
    assert by_document.size == 3
    (hits,) = by_page.search(["page about"], 9)
    assert sorted(ids(hits)) == ["d0#page-1", "d0#page-2", "d1#page-1", "d2#page-1", "d2#page-2"]
    best: dict[str, float] = {}
    for hit in hits:
        best.setdefault(hit.id.partition("#")[0], hit.score)
    (found,) = by_document.search(["page about"], 9)
    assert [tuple(hit) for hit in found] == list(best.items())
    assert ids(by_document.search(["page about"], 1)[0]) == ids(found)[:1]


def test_blank_pages_keep_their_number_and_are_never_found(model: str, tmp_path: Path) -> None:
    white = Image.new("RGB", (160, 64), "white")
    documents = paged([[page("one"), white, page("three")], [white], []], tmp_path)
    retriever = build(documents, model, unit="page")
    assert sorted(ids(retriever.search(["one"], 9)[0])) == ["d0#page-1", "d0#page-3"]
    assert (retriever.blank_pages, retriever.failed_pages, retriever.blank) == (2, 0, 2)
    assert ids(build(documents, model).search(["one"], 9)[0]) == ["d0"]


def test_a_failed_page_is_skipped_only_when_asked(
    model: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = paged([[page("one"), page("two")], [page("three")]], tmp_path)
    (tmp_path / "0-0.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"0-0\.png: no readable image"):
        build(documents, model)
    retriever = build(documents, model, unit="page", pages={"failed": "skip"})
    assert sorted(ids(retriever.search(["one"], 9)[0])) == ["d0#page-2", "d1#page-1"]
    assert (retriever.failed_pages, retriever.blank_pages) == (1, 0)
    assert "1 of 3 pages failed" in caplog.text


def test_equal_pages_are_in_corpus_order(model: str) -> None:
    texts = ["other words", "the same page", "more of others", "the same page", "the same page"]
    two_stages = {"candidates": 0.9}
    for chosen in ({}, {"scoring": "pooled"}, two_stages, two_stages | {"first_stage": "pooled"}):
        (hits,) = build(texts, model, batch_size=2, **chosen).search(["page"], 5)
        same = [hit for hit in hits if hit.id in ("d1", "d3", "d4")]
        assert ids(same) == ["d1", "d3", "d4"]
        assert len({hit.score for hit in same}) == 1


@pytest.mark.parametrize("texts", [["", " "], ["\n"]])
def test_nothing_to_find(texts: list[str], model: str) -> None:
    with pytest.raises(
        EmptyCorpusError, match=f"all {len(texts)} have no page, or blank ones only"
    ):
        build(texts, model)


def test_blank_queries_and_large_k(model: str) -> None:
    retriever = build(TEXTS, model)
    empty, spaces, found = retriever.search(["", "  ", "budget"], 99)
    assert (empty, spaces) == ([], [])
    assert len(found) == 4


def test_characters_that_the_font_lacks_are_told(
    model: str, caplog: pytest.LogCaptureFixture
) -> None:
    build(["예산 공고", "budget"], model)
    assert "lacks 4 characters of the texts" in caplog.text
    caplog.clear()
    build(["budget"], model)
    assert "lacks" not in caplog.text


def test_nan_names_the_page_and_the_query(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = PageEncoder.pages

    def poisoned(self: PageEncoder, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        found = encoded(self, images)
        found[-1][0, 0] = np.nan
        return found

    with monkeypatch.context() as patch:
        patch.setattr(PageEncoder, "pages", poisoned)
        with pytest.raises(VectorError, match="page 1 of document 'd1' holds NaN"):
            build(["one", "two"], model, batch_size=2)
    retriever = build(TEXTS, model)
    nothing = np.full((2, 128), np.nan, dtype=np.float32)
    monkeypatch.setattr(PageEncoder, "queries", lambda self, texts: [nothing for _ in texts])
    with pytest.raises(PermanentSearchError, match="the query 'budget' holds NaN"):
        retriever.search(["budget"], 1)


# Scoring


def test_candidates_are_scored_as_all_pages_are(model: str) -> None:
    texts = [f"{number} {word}" for number in range(20) for word in ("budget", "weather of today")]
    exact = build(texts, model)
    two_stages = build(texts, model, candidates=0.2, first_stage="pooled")
    pooled = build(texts, model, scoring="pooled")
    query = "what is the budget"
    scores = {hit.id: hit.score for hit in exact.search([query], 40)[0]}
    (found,) = two_stages.search([query], 5)
    # A fifth of 40 pages: the 8 that come first by their mean vectors, in the order of MaxSim.
    first = ids(pooled.search([query], 8)[0])
    expected = sorted(first, key=lambda name: -scores[name])[:5]
    assert ids(found) == expected
    for hit in found:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-5)
    assert len(two_stages.search([query], 30)[0]) == 30  # as many candidates as hits are wanted


def test_centroids_lead_to_the_pages_worth_scoring(model: str, tmp_path: Path) -> None:
    texts = [f"{number} {word}" for number in range(20) for word in ("budget", "weather of today")]
    query = "what is the budget"
    (exact,) = build(texts, model).search([query], 40)
    scores = {hit.id: hit.score for hit in exact}
    chosen = {"candidates": 0.3, "centroids": {"count": 64, "probes": 8}}
    first, again = (build(texts, model, index_dir=tmp_path / "index", **chosen) for _ in range(2))
    (found,) = first.search([query], 5)
    assert again.search([query], 5) == [found]
    for hit in found:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-5)
    assert len({*ids(found)} & {*ids(exact)[:5]}) >= 4
    assert first.fingerprint != build(texts, model, candidates=0.3).fingerprint
    with pytest.raises(IndexMismatch, match=r"centroids\.count: there 64, asked for 32") as error:
        build(texts, model, index_dir=tmp_path / "index", candidates=0.3, centroids={"count": 32})
    # It would remove the vectors of the pages too.
    assert "index/centroids" in str(error.value)
    assert "--rebuild" not in str(error.value)
    # More probes need no other groups.
    build(texts, model, index_dir=tmp_path / "index", **chosen | {"centroids": {"count": 64}})


def test_half_precision_on_the_disk(model: str) -> None:
    query = "the budget of the city"
    exact = {hit.id: hit.score for hit in build(TEXTS, model).search([query], 4)[0]}
    for dtype in ("float16", "bfloat16"):
        for hit in build(TEXTS, model, dtype=dtype).search([query], 4)[0]:
            assert hit.score == pytest.approx(exact[hit.id], abs=0.05)


# The index


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
        {"unit": "page"},
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


# Settings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scoring": "pooled", "candidates": 0.1}, "candidates confine late interaction"),
        ({"first_stage": "pooled"}, "give candidates too"),
        ({"centroids": {"probes": 3}}, "centroids have an effect with candidates"),
        (
            {"candidates": 0.1, "first_stage": "pooled", "centroids": {"count": 3}},
            "first_stage 'centroids' only",
        ),
        ({"candidates": 0}, "greater than 0"),
        ({"candidates": 1}, "less than 1"),
        ({"unit": "chunk"}, "'document' or 'page'"),
        ({"max_image_token": 5}, "Extra inputs"),
        ({"pages": {"style": {"font_szie": 3}}}, "Extra inputs"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        MultimodalSettings.model_validate(given)


def test_the_dtype_follows_the_device(model: str) -> None:
    # Also on CPUs that compute in bfloat16: an index would differ from machine to machine.
    assert PageEncoder(MultimodalSettings(model=model, device="cpu")).dtype == "float32"
    asked = MultimodalSettings(model=model, device="cpu", model_dtype="bfloat16")
    assert PageEncoder(asked).dtype == "bfloat16"


def test_the_demo_takes_it_with_one_word() -> None:
    config = load("configs/demo.yaml", ["--reward.backends", "multimodal"])
    assert list(config.reward.backends) == ["multimodal"]
    assert config.retriever_settings("multimodal") == MultimodalSettings()


def test_it_is_built_by_name(model: str) -> None:
    settings = MultimodalSettings(model=model, device="cpu", pages=PageSettings())
    retriever = build_retriever("multimodal", settings, collection(TEXTS))
    assert retriever.backend == "multimodal"
    assert len(retriever.search(["budget"], 3)[0]) == 3
