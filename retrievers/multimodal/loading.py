"""A page model's weights and processor, complete or not at all.

colpali-engine and transformers only warn of weights that are missing, and go on with random ones.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from retrievers.models import ModelError, resolve
from retrievers.multimodal.families import FAMILIES, family_name
from retrievers.multimodal.settings import MultimodalSettings

# Weights of the head that predicts words: left over from the model's making, and never used here.
UNUSED = re.compile(r"(^|\.)lm_head\.")
SHOWN = 8  # keys named in a message
# What transformers and torch raise, quantisers and their missing packages included.
FAULTS = (OSError, RuntimeError, KeyError, TypeError, ValueError, ImportError)


def load(settings: MultimodalSettings, device: str, dtype: Any) -> tuple[str, Any, Any]:
    """The name of the model's family, the model, ready to use, and its processor.

    Raises:
        ModelError: it cannot be loaded, is of no known family, lacks weights or has others, cannot
            keep to `max_image_tokens`, or be put on the device.
    """
    import torch
    from safetensors import SafetensorError

    place = resolve(settings.model)
    try:
        # The random numbers of a training around this are left alone.
        with torch.random.fork_rng(), _quiet():
            name, model, processor = _loaded(settings, place, dtype)
    except ModelError:
        raise
    except (*FAULTS, SafetensorError) as error:
        raise ModelError(f"model {settings.model!r} cannot be loaded: {_first(error)}") from error
    if settings.max_image_tokens is not None:
        FAMILIES[name].cap(processor, settings.max_image_tokens)
    return name, _placed(model, settings.model, device, dtype).eval(), processor


def _loaded(settings: MultimodalSettings, place: str, dtype: Any) -> tuple[str, Any, Any]:
    import colpali_engine.models as engine
    from transformers import PreTrainedConfig

    base = _base_of_adapter(place, settings.revision)
    revision = settings.revision if base is None else None
    whole = place if base is None else base
    config, _ = PreTrainedConfig.get_config_dict(whole, revision=revision)
    name = family_name(config, settings.model)
    model, found = getattr(engine, name).from_pretrained(
        whole,
        revision=revision,
        dtype=dtype,
        output_loading_info=True,
        **{"use_safetensors": True} | settings.model_kwargs,
    )
    _check(found, settings.model)
    _without_head(model)
    if base is not None:
        _check(_add_adapter(model, place, settings.revision), settings.model)
    processor = getattr(engine, FAMILIES[name].processor)
    return name, model, processor.from_pretrained(place, revision=settings.revision)


def _placed(model: Any, name: str, device: str, dtype: Any) -> Any:
    """The model on the device; one that transformers quantised keeps the types it has."""
    try:
        if getattr(model, "is_quantized", False):
            return model.to(device=device)
        return model.to(device=device, dtype=dtype)
    # torch asserts that it was built for a device.
    except (AssertionError, RuntimeError, ValueError) as error:
        raise ModelError(
            f"model {name!r} cannot be put on the device {device!r}: {_first(error)}"
        ) from error


def _base_of_adapter(place: str, revision: str | None) -> str | None:
    """The model that an adapter is for; None where `place` is no adapter."""
    from transformers.utils.peft_utils import find_adapter_config_file

    file = find_adapter_config_file(place, revision=revision)
    if file is None:
        return None
    return str(json.loads(Path(file).read_text(encoding="utf-8"))["base_model_name_or_path"])


def _add_adapter(model: Any, place: str, revision: str | None) -> Mapping[str, Any]:
    from transformers.conversion_mapping import get_model_conversion_mapping

    # Adapters of earlier releases name modules as these did; `from_pretrained` maps the names of a
    # model's own weights only.
    renamed = getattr(model, "_checkpoint_conversion_mapping", None) or None
    found: Mapping[str, Any] = model.load_adapter(
        place,
        adapter_kwargs={"revision": revision},
        weight_mapping=get_model_conversion_mapping(model, key_mapping=renamed),
        use_safetensors=True,
    ).to_dict()
    return found


def _check(found: Mapping[str, Any], model: str) -> None:
    """Refuse a model of which transformers did not load every weight, or not use every one."""
    unexpected = [key for key in found["unexpected_keys"] if not UNUSED.search(key)]
    faults = {
        "missing": found["missing_keys"],
        "unexpected": unexpected,
        "of another shape": [key for key, *_ in found["mismatched_keys"]],
        "not convertible": found["error_msgs"],
    }
    told = [f"{what}: {_some(keys)}" for what, keys in faults.items() if keys]
    if told:
        raise ModelError(
            f"model {model!r}: its weights do not fit its class; {'; '.join(told)}. "
            "Choose a complete checkpoint, or an adapter whose base model is complete"
        )


def _without_head(model: Any) -> None:
    """Have no words predicted: ColPali does it for every vector, and throws the result away."""
    from torch import nn

    for module in list(model.modules()):
        if isinstance(getattr(module, "lm_head", None), nn.Module):
            module.lm_head = nn.Identity()


def _first(error: Exception) -> str:
    """The first line of what it says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _some(keys: Iterable[str]) -> str:
    named = sorted(keys)
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return ", ".join(named[:SHOWN]) + more


class _quiet:
    """Without progress bars: models of this kind load in many parts."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        if self._shown:
            logging.enable_progress_bar()
