"""Search of page images: any family of colpali-engine, as it is computed there; settings."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from retrievers import build_retriever
from retrievers.models import ModelError
from retrievers.multimodal import MultimodalSettings
from retrievers.multimodal.encoder import PageEncoder
from retrievers.multimodal.families import family_name
from retrievers.pages import PageSettings, PageStyle, render_pages
from rewriter.config import load
from tests import page_engines
from tests.page_engines import TEXTS, build, collection, ids, page
from tests.tiny_pages import FAMILIES

models, model = page_engines.models, page_engines.model  # fixtures


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


def test_the_dtype_follows_the_device(model: str) -> None:
    # Also on CPUs that compute in bfloat16: an index would differ from machine to machine.
    assert PageEncoder(MultimodalSettings(model=model, device="cpu")).dtype == "float32"
    asked = MultimodalSettings(model=model, device="cpu", model_dtype="bfloat16")
    assert PageEncoder(asked).dtype == "bfloat16"


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
        ({"max_image_token": 5}, "Extra inputs"),
        ({"pages": {"style": {"font_szie": 3}}}, "Extra inputs"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        MultimodalSettings.model_validate(given)


def test_the_demo_takes_it_with_one_word() -> None:
    config = load("configs/demo.yaml", ["--reward.backends", "multimodal"])
    assert list(config.reward.backends) == ["multimodal"]
    assert config.retriever_settings("multimodal") == MultimodalSettings()


def test_it_is_built_by_name(model: str) -> None:
    settings = MultimodalSettings(model=model, device="cpu", pages=PageSettings())
    retriever = build_retriever("multimodal", settings, collection(TEXTS))
    assert retriever.backend == "multimodal"
    assert len(retriever.search(["budget"], 3)[0]) == 3
