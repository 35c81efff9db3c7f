"""What a model is, whatever its name: digests of weights, configuration and tokenizer."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# A configuration's traces of where it was saved, and by which release.
PROVENANCE = {"_name_or_path", "transformers_version"}

# The same of an adapter's.
ADAPTER_PROVENANCE = {"base_model_name_or_path", "revision", "peft_version"}


def weights_digest(state: Mapping[str, Any]) -> str:
    """SHA-256 (hexadecimal) of a state dict: names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, weights in sorted(state.items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}\n".encode())
        digest.update(_bytes(weights))
    return digest.hexdigest()


def config_text(config: Any) -> str:
    """JSON of what a transformers configuration says beyond the defaults of its class."""
    values = config.to_diff_dict()
    kept = {key: values[key] for key in values.keys() - PROVENANCE}
    return json.dumps(kept, sort_keys=True, default=str)


def adapters_text(model: Any) -> str:
    """JSON of the settings of a model's peft adapters, such as the scale of their weights."""
    configs = getattr(model, "peft_config", None) or {}
    kept = {
        name: {k: v for k, v in config.to_dict().items() if k not in ADAPTER_PROVENANCE}
        for name, config in configs.items()
    }
    return json.dumps(kept, sort_keys=True, default=_sorted)


def tokenizer_state(tokenizer: Any) -> Any:
    """JSON value of all that a tokenizer does."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        # How the last texts were padded and cut is not part of it.
        return json.loads(backend.to_str()) | {"padding": None, "truncation": None}
    if hasattr(backend, "get_vocab"):
        return backend.get_vocab()
    return type(tokenizer).__name__


def _sorted(value: Any) -> Any:
    """A set, whose order differs from process to process, as a list; else a text."""
    return sorted(value) if isinstance(value, set) else str(value)


def _bytes(weights: Any) -> memoryview:
    import torch

    plain = weights.detach().cpu().contiguous().flatten()
    content: memoryview = plain.view(torch.uint8).numpy().data
    return content
