"""Search of page images: a model is loaded whole, or not at all."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrievers import models as model_names
from retrievers.models import ModelError, resolve
from retrievers.multimodal import MultimodalSettings
from retrievers.multimodal.encoder import PageEncoder
from tests import page_engines
from tests.page_engines import TEXTS, build, page

models = page_engines.models  # a fixture


def edit_weights(folder: Path, rename: Callable[[str], str | None]) -> None:
    """Rename the weights of a saved model; None drops one."""
    from safetensors.torch import load_file, save_file

    (file,) = folder.glob("*model.safetensors")
    kept = {rename(name): weights for name, weights in load_file(file).items()}
    save_file({name: w for name, w in kept.items() if name is not None}, file, {"format": "pt"})


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
