"""Loading a saved rewriter: another base model, and files that are missing or damaged."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from retrievers.models import ModelError
from rewriter import Rewriter
from rewriter.checkpoint import MANIFEST, CheckpointError, Manifest
from rewriter.policy import load_tokenizer
from tests import saved_rewriter
from tests.saved_rewriter import ADAPTER, edit, save_other

base, saved, copy = saved_rewriter.base, saved_rewriter.saved, saved_rewriter.copy  # fixtures


def test_another_base_model_is_refused(saved: Path, tmp_path: Path, base: Path) -> None:
    other = save_other(base, tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"trained on .* is another model .* base="):
        Rewriter.from_pretrained(saved, base=str(other))
    moved = shutil.copytree(base, tmp_path / "moved")
    assert Rewriter.from_pretrained(saved, base=str(moved), dtype="float32").rewrite(["iota"])


def test_a_moved_base_model_is_named(copy: Path) -> None:
    edit(copy, lambda manifest: manifest["base"].update(name="/nowhere/model"))
    with pytest.raises(ModelError, match=r"'/nowhere/model': no such folder"):
        Rewriter.from_pretrained(copy)


def test_missing_and_unknown_adapter_keys_are_refused(copy: Path) -> None:
    weights = load_file(copy / ADAPTER)
    first = min(weights)
    save_file({key: value for key, value in weights.items() if key != first}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match=f"1 adapter keys missing .*{first}"):
        Rewriter.from_pretrained(copy)
    renamed = first.replace("layers.0", "layers.7")
    save_file({**weights, renamed: weights[first].clone()}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match=f"1 unknown .*{renamed}"):
        Rewriter.from_pretrained(copy)


def test_an_adapter_of_another_shape_is_refused(copy: Path) -> None:
    weights = load_file(copy / ADAPTER)
    first = min(weights)
    save_file({**weights, first: torch.zeros(2, 2)}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match="does not fit"):
        Rewriter.from_pretrained(copy)


def test_a_cut_adapter_file_is_refused(copy: Path) -> None:
    (copy / ADAPTER).write_bytes((copy / ADAPTER).read_bytes()[:100])
    with pytest.raises(CheckpointError, match="damaged"):
        Rewriter.from_pretrained(copy)


@pytest.mark.parametrize("file", [ADAPTER, "adapter_config.json", MANIFEST])
def test_a_missing_file_is_named(copy: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy.parent)  # "best" could be a hub id; it must not be asked for
    (copy / file).unlink()
    with pytest.raises(CheckpointError, match=f"no {file}; give"):
        Rewriter.from_pretrained("best")


def test_a_file_instead_of_a_folder(saved: Path) -> None:
    with pytest.raises(CheckpointError, match="no manifest"):
        Rewriter.from_pretrained(saved / MANIFEST)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ('{"format": 1, "base', "not JSON"),
        ("[]", "valid dictionary"),
        ("{}", "`base`: Field required"),
        ('{"format": 2}', "`format`: Input should be 1"),
        ('{"format": 1, "base": "a/b"}', "`base`: "),
        ('{"format": 1, "base": {"name": "a/b"}}', "`base.fingerprint`: Field required"),
    ],
)
def test_a_damaged_manifest(copy: Path, text: str, told: str) -> None:
    (copy / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match=told) as caught:
        Rewriter.from_pretrained(copy)
    assert str(copy / MANIFEST) in str(caught.value)


def test_damaged_sections_of_a_manifest(copy: Path) -> None:
    edit(copy, lambda manifest: manifest["prompt"].update(template="no place"))
    with pytest.raises(CheckpointError, match=r"`prompt.template`.*\{query\}"):
        Rewriter.from_pretrained(copy)
    edit(copy, lambda manifest: manifest.update(prompt={}, decoding={"batch_size": 4}))
    with pytest.raises(CheckpointError, match=r"`decoding.max_new_tokens`"):
        Rewriter.from_pretrained(copy)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"peft_type": "NONE"}', '{"peft_type": []}'])
def test_a_damaged_adapter_config_is_named(copy: Path, text: str) -> None:
    (copy / "adapter_config.json").write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged") as caught:
        Rewriter.from_pretrained(copy)
    assert str(caught.value).startswith(f"{copy / 'adapter_config.json'}: ")


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_damaged_tokenizer_is_named(copy: Path, file: str, text: str) -> None:
    (copy / file).write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged") as caught:
        Rewriter.from_pretrained(copy)
    assert str(caught.value).startswith(f"{copy / file}: ")


@pytest.mark.parametrize("text", ["{}", '{"added_tokens": [], "model": {}}'])
def test_a_tokenizer_without_its_model_is_damaged(copy: Path, text: str) -> None:
    (copy / "tokenizer.json").write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged"):
        Rewriter.from_pretrained(copy)
    with pytest.raises(ModelError, match="no tokenizer that can be read"):
        load_tokenizer(str(copy))


def test_further_keys_of_a_manifest_are_kept(saved: Path) -> None:
    manifest = Manifest.model_validate_json((saved / MANIFEST).read_text())
    assert manifest.model_dump()["step"] == 20
