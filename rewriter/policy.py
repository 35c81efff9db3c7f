"""The model that rewrites: loading it, and the public `Rewriter` over a trained one.

from rewriter import Rewriter
Rewriter.from_pretrained("runs/demo/best").rewrite(["how do I …"])
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewriter.device import dtype_for, on_cpu
from rewriter.generation import Decoding, generate, rewrites
from rewriter.models import ModelError, resolve
from rewriter.prompt import PromptSettings
from rewriter.records import Rewrite

MANIFEST = "manifest.json"
_SAMPLED = 64  # values of each weight that go into a fingerprint


class CheckpointError(ValueError):
    """A saved rewriter that cannot be used; the message names the folder and what is wrong."""


class Rewriter:
    """Rewrites queries as the training that made it saw them: same prompt, same parser.

    Args:
        model: a causal language model, adapter included.
        tokenizer: its tokenizer.
        prompt: how a query is put to it.
        decoding: how it answers; greedy by default.
    """

    def __init__(
        self, model: Any, tokenizer: Any, prompt: PromptSettings, decoding: Decoding
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.decoding = decoding

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, base: str | None = None, dtype: str = "auto"
    ) -> "Rewriter":
        """Load a trained rewriter.

        Args:
            folder: a run's `best` folder.
            base: where the base model is, if it moved since; checked against the manifest.
            dtype: of the base model's weights.

        Raises:
            CheckpointError: no rewriter there, another base model, or adapter keys missing.
            ModelError: the base model cannot be had.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        known = manifest["base"]
        model, tokenizer = load_model(base or known["name"], known.get("revision"), dtype)
        found = fingerprint(model)
        if found != known["fingerprint"]:
            raise CheckpointError(
                f"{folder}: trained on {known['name']} (fingerprint {known['fingerprint'][:12]}), "
                f"but {base or known['name']} is another model ({found[:12]}); give the right one "
                "with base="
            )
        decoding = Decoding(**manifest["decoding"])
        prompt = PromptSettings.model_validate(manifest["prompt"])
        return cls(attach(model, folder), tokenizer, prompt, decoding)

    def rewrites(self, queries: Sequence[str]) -> list[Rewrite]:
        """(Q,) rewrites; one that cannot be parsed says why."""
        if isinstance(queries, str):
            raise TypeError("give a list of queries, not one string")
        ids = [str(place) for place in range(len(queries))]
        written = generate(self.model, self.tokenizer, self.prompt.batch(queries), self.decoding)
        return list(rewrites(written, ids, self.prompt).values())

    def rewrite(self, queries: Sequence[str]) -> list[str]:
        """(Q,) rewrites; the query itself where the model wrote nothing usable."""
        pairs = zip(queries, self.rewrites(queries), strict=True)
        return [query if made.text is None else made.text for query, made in pairs]

    def search_texts(self, queries: Sequence[str]) -> list[str]:
        """(Q,) texts to send to the backend: the rewrite in the configured mode."""
        pairs = zip(queries, self.rewrites(queries), strict=True)
        return [
            query if made.text is None else self.prompt.search_text(query, made.text)
            for query, made in pairs
        ]


def load_model(name: str, revision: str | None, dtype: str, **init: Any) -> tuple[Any, Any]:
    """The base model on this machine's device, and its tokenizer.

    Raises:
        ModelError: there is no such model, or its tokenizer has no chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM

    place = resolve(name)
    cpu = on_cpu(False)
    wanted = dtype_for(dtype, cpu)
    try:
        model = AutoModelForCausalLM.from_pretrained(place, revision=revision, dtype=wanted, **init)
    except OSError as error:
        raise ModelError(f"model {name!r} cannot be loaded: {_first_line(error)}") from error
    device = "cpu" if cpu else torch.accelerator.current_accelerator()
    return model.to(device).eval(), load_tokenizer(name, revision)


def load_tokenizer(name: str, revision: str | None = None) -> Any:
    """A model's tokenizer, padding on the left.

    Raises:
        ModelError: it cannot be loaded, or has no chat template: such a model does not know where
            a turn ends.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            resolve(name), revision=revision, padding_side="left", truncation_side="left"
        )
    except OSError as error:
        raise ModelError(f"model {name!r}: no tokenizer: {_first_line(error)}") from error
    if tokenizer.chat_template is None:
        raise ModelError(
            f"model {name!r} has no chat template; take its instruction-tuned version, or save a "
            "template with its tokenizer"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def attach(model: Any, folder: Path, *, trainable: bool = False) -> Any:
    """Put a saved adapter on a base model.

    Raises:
        CheckpointError: the adapter does not fit the model, or keys are missing or left over.
    """
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import safe_open

    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{folder}: no adapter_model.safetensors; give a run's `best` folder")
    try:
        loaded = PeftModel.from_pretrained(model, folder, is_trainable=trainable)
    except RuntimeError as error:
        raise CheckpointError(f"{folder}: the adapter does not fit this base model: {error}") from (
            error
        )
    with safe_open(weights, framework="pt") as file:
        saved = set(file.keys())
    wanted = set(get_peft_model_state_dict(loaded))
    if saved != wanted:
        missing, extra = sorted(wanted - saved), sorted(saved - wanted)
        raise CheckpointError(
            f"{weights}: {len(missing)} adapter keys missing {missing[:2]}, {len(extra)} unknown "
            f"{extra[:2]}; it was saved from another model or is damaged"
        )
    return loaded


def fingerprint(model: Any) -> str:
    """Hash of a base model's weights: names, shapes, and a sample of each weight's values.

    Values are compared in bfloat16, so that the dtype it was loaded in does not matter. Adapter
    weights are left out.
    """
    import torch

    base = model.get_base_model() if hasattr(model, "peft_config") else model
    digest = hashlib.sha256()
    for name, weight in sorted(base.named_parameters(), key=lambda pair: _plain(pair[0])):
        if "lora_" in name:
            continue
        stride = max(1, weight.numel() // _SAMPLED)
        values = weight.detach().flatten()[::stride].to("cpu", torch.bfloat16).view(torch.int16)
        digest.update(f"{_plain(name)} {tuple(weight.shape)}".encode())
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """A saved rewriter's manifest. Raises CheckpointError where there is none that can be read."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder}: no {MANIFEST}; give the `best` folder of a finished run"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}); the file is damaged") from error
    missing = {"base", "prompt", "decoding"} - manifest.keys()
    if missing:
        raise CheckpointError(f"{path}: lacks {', '.join(sorted(missing))}; the file is damaged")
    return manifest


def _plain(name: str) -> str:
    """A weight's name without what peft puts around it."""
    return name.replace(".base_layer", "")


def _first_line(error: OSError) -> str:
    return str(error).strip().splitlines()[0]
