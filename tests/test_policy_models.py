"""What tells one model from another, and base models that cannot be used."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from retrievers.models import ModelError
from rewriter import Rewriter
from rewriter.checkpoint import attach, fingerprint
from rewriter.policy import load_model, load_tokenizer
from rewriter.shared_prefix import SharedForward
from tests import saved_rewriter
from tests.saved_rewriter import adapted, model, save_other

base, saved = saved_rewriter.base, saved_rewriter.saved  # fixtures


# What tells models apart


def test_a_fingerprint_does_not_depend_on_the_dtype(base: Path) -> None:
    found = {fingerprint(model(base, dtype)) for dtype in (torch.float32, torch.bfloat16)}
    found.add(fingerprint(model(base, torch.float16)))
    assert len(found) == 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dora": True},
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["q_proj"], "trainable_token_indices": [3, 4]},
    ],
    ids=["all-linear", "dora", "embedding", "modules-to-save", "tokens"],
)
def test_a_fingerprint_does_not_depend_on_an_adapter(base: Path, options: dict[str, Any]) -> None:
    assert fingerprint(adapted(base, **options)) == fingerprint(model(base))


def test_a_fingerprint_tells_models_apart(base: Path, tmp_path: Path) -> None:
    other = save_other(base, tmp_path / "other")
    assert fingerprint(model(other)) != fingerprint(model(base))


def test_packed_weights_have_a_fingerprint_by_their_values() -> None:
    def packed(last: int) -> Any:
        layer = torch.nn.Module()
        values = torch.tensor([[1, 2, last]], dtype=torch.uint8)
        layer.weight = torch.nn.Parameter(values, requires_grad=False)
        return layer

    assert fingerprint(packed(3)) == fingerprint(packed(3)) != fingerprint(packed(4))


@pytest.mark.parametrize(
    "options",
    [{}, {"use_dora": True}, {"target_modules": ["q_proj", "embed_tokens"]}],
    ids=["all-linear", "dora", "embedding"],
)
@pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers`")
def test_adapters_of_other_kinds_come_back(
    base: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    before = adapted(base, **options)
    before.save_pretrained(tmp_path)
    after = attach(model(base), tmp_path, trainable=True)
    tokens = torch.arange(6)[None]
    torch.testing.assert_close(after(tokens).logits, before(tokens).logits)
    assert any(weight.requires_grad for weight in after.parameters())


# Base models that cannot be used


def test_a_base_model_with_missing_weights_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights are missing .*model\.norm\.weight"):
        load_model(str(tmp_path), None, "float32")


def test_a_loaded_model_reads_shared_prefixes_once_as_in_training(base: Path) -> None:
    model, _ = load_model(str(base), None, "auto")
    assert isinstance(model.get_decoder().forward, SharedForward)


def test_a_pickle_is_not_read(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        load_model(str(tmp_path), None, "float32")


def test_a_model_without_a_chat_template_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template"):
        load_model(str(tmp_path), None, "float32")


def test_a_tokenizer_without_an_end_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "tokenizer_config.json"
    options = json.loads(file.read_text())
    file.write_text(json.dumps({**options, "eos_token": None, "pad_token": None}))
    with pytest.raises(ModelError, match="neither eos_token nor pad_token"):
        load_tokenizer(str(tmp_path))


def test_a_folder_without_a_tokenizer_is_one_whole_line(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelError) as caught:
        load_tokenizer(str(tmp_path))
    said = str(caught.value)
    assert said.startswith(f"model {str(tmp_path)!r}: no tokenizer that can be read; save one in")
    assert "\n" not in said
    assert said.endswith("to convert a slow tokenizer to a fast one.)")  # nothing cut off


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "model '' is no name; give a hub id, a folder, or package:NAME"),
        ("package:", "model 'package:' names no package; write package:NAME"),
    ],
)
def test_names_that_are_none(saved: Path, name: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_tokenizer(name)
    with pytest.raises(ModelError, match=said):
        Rewriter.from_pretrained(saved, base=name)


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(str(tmp_path), None, "auto")
    with pytest.raises(ModelError, match="no tokenizer"):
        load_tokenizer(str(tmp_path))
