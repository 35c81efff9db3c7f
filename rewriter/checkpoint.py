"""A saved rewriter: its manifest, its adapter, and the base model that they belong to."""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rewriter.generation import Decoding
from rewriter.prompt import PromptSettings

MANIFEST = "manifest.json"
_SAMPLED = 4096  # values of each weight that go into a fingerprint
# Parts of names that peft puts in, around a weight of the base model and for one of its own.
_WRAPPERS = frozenset({"base_layer", "original_module", "token_adapter"})
_ADDED = ("lora_", "modules_to_save", "trainable_tokens_")


class CheckpointError(ValueError):
    """A saved rewriter that cannot be used; the message names the folder and what is wrong."""


class Base(BaseModel):
    """The model that an adapter was trained on."""

    model_config = ConfigDict(frozen=True)

    name: str
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    fingerprint: str


class Manifest(BaseModel):
    """What a saved rewriter needs beside its weights; more may stand there, for people to read."""

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1]
    base: Base
    prompt: PromptSettings
    decoding: Decoding


def read_manifest(folder: Path) -> Manifest:
    """A saved rewriter's manifest. Raises CheckpointError where there is none that can be read."""
    path = folder / MANIFEST
    try:
        values = _json(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(
            f"{folder}: no {MANIFEST}; give the `best` folder of a finished run"
        ) from error
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(
            f"`{'.'.join(map(str, fault['loc']))}`: {fault['msg']}" for fault in error.errors()
        )
        raise CheckpointError(
            f"{path}: {faults}; the file is damaged, or another version of rlqr wrote it"
        ) from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}); the file is damaged") from error


def check_tokenizer(folder: Path) -> None:
    """Raise CheckpointError for a tokenizer's file that is damaged; transformers names none."""
    from tokenizers import Tokenizer

    config, path = folder / "tokenizer_config.json", folder / "tokenizer.json"
    if config.is_file() and not isinstance(_json(config), dict):
        raise CheckpointError(f"{config}: holds no JSON object; the file is damaged")
    try:
        if path.is_file():
            Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing more special
        raise CheckpointError(f"{path}: {error}; the file is damaged") from error


def attach(model: Any, folder: Path, *, trainable: bool = False) -> Any:
    """Put a saved adapter on a base model.

    Raises:
        CheckpointError: a file is missing or damaged, the adapter does not fit the model, or keys
            are missing or left over.
    """
    from peft import PeftModel

    # Where one is missing, peft would take the folder's name for a hub id and ask there.
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        if not (folder / file).is_file():
            raise CheckpointError(f"{folder}: no {file}; give a run's `best` folder")
    _check_adapter_config(folder)
    saved = _saved_keys(folder / "adapter_model.safetensors")
    try:
        loaded = PeftModel.from_pretrained(model, str(folder), is_trainable=trainable)
    except (RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{folder}: the adapter does not fit this base model: {error}"
        ) from error
    _check_keys(folder, saved, loaded)
    return loaded


def _check_adapter_config(folder: Path) -> None:
    from peft import PeftConfig

    path = folder / "adapter_config.json"
    values = _json(path)
    if not isinstance(values, dict) or "peft_type" not in values:
        raise CheckpointError(f"{path}: no JSON object with `peft_type`; the file is damaged")
    try:
        PeftConfig.from_pretrained(str(folder))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: {error!r}; the file is damaged, or another version of peft wrote it"
        ) from error


def _saved_keys(weights: Path) -> set[str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(weights, framework="pt") as file:
            return set(file.keys())
    except SafetensorError as error:
        raise CheckpointError(f"{weights}: {error}; the file is damaged") from error


def _check_keys(folder: Path, saved: set[str], loaded: Any) -> None:
    """peft loads what it finds and leaves the rest at random."""
    from peft import get_peft_model_state_dict

    # "auto", peft's default, may ask the hub whether the vocabulary grew.
    wanted = set(get_peft_model_state_dict(loaded, save_embedding_layers=False))
    allowed = set(get_peft_model_state_dict(loaded, save_embedding_layers=True))
    missing, extra = sorted(wanted - saved), sorted(saved - allowed)
    if missing or extra:
        raise CheckpointError(
            f"{folder}: {len(missing)} adapter keys missing {missing[:2]}, {len(extra)} unknown "
            f"{extra[:2]}; it was saved from another model or is damaged"
        )


def fingerprint(model: Any) -> str:
    """Hash of a base model's weights: names, shapes, and a sample of each weight's signs.

    Signs are what float32, bfloat16 and float16 agree on: rounding moves every other property of a
    value. An adapter and what peft puts around the names are left out.
    """
    base = model.get_base_model() if hasattr(model, "peft_config") else model
    digest = hashlib.sha256()
    weights = ((_plain(name), weight) for name, weight in base.named_parameters())
    for name, weight in sorted(weights, key=lambda pair: pair[0] or ""):
        if name is not None:
            digest.update(f"{name} {tuple(weight.shape)}".encode())
            digest.update(_sample(weight))
    return digest.hexdigest()


def _sample(weight: Any) -> bytes:
    import torch

    stride = max(1, weight.numel() // _SAMPLED)
    values = weight.detach().flatten()[::stride].cpu()
    # Quantised weights are packed into integers, which rounding does not touch.
    kept = torch.signbit(values.float()) if values.is_floating_point() else values
    sample: bytes = kept.contiguous().view(torch.uint8).numpy().tobytes()
    return sample


def _plain(name: str) -> str | None:
    """The base model's name of a weight; None for one that an adapter added."""
    parts = name.split(".")
    if any(part.startswith(_ADDED) for part in parts):
        return None
    return ".".join(part for part in parts if part not in _WRAPPERS)
