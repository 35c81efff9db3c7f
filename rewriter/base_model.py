"""A base model and its tokenizer, loaded or refused in one line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrievers.models import PACKAGE, ModelError, resolve
from rewriter.cpu_head import project_contiguous
from rewriter.device import dtype_for, on_cpu
from rewriter.shared_prefix import share_prefixes

CAUSAL = "AutoModelForCausalLM"


def load_model(name: str, revision: str | None, dtype: str, **init: Any) -> tuple[Any, Any]:
    """The base model on this machine's device, and its tokenizer.

    Args:
        name, revision: see `ModelSettings`.
        dtype: of the weights; see `dtype_for`.
        init: further arguments of `from_pretrained`.

    Raises:
        ModelError: there is no such model, it is incomplete, or has no chat template.
    """
    trust = bool(init.get("trust_remote_code", False))
    return load_weights(name, revision, dtype, **init), load_tokenizer(name, revision, trust=trust)


def load_tokenizer(name: str, revision: str | None = None, *, trust: bool = False) -> Any:
    """A model's tokenizer, padding on the left.

    Args:
        name, revision: of the model.
        trust: run code that comes with it.

    Raises:
        ModelError: it cannot be loaded, or has no chat template: such a model does not know where
            a turn ends.
    """
    from transformers import AutoTokenizer

    place = _place(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            place,
            revision=revision,
            trust_remote_code=trust,
            padding_side="left",
            truncation_side="left",
        )
    except Exception as error:  # a damaged file raises anything, tokenizers a bare Exception
        raise ModelError(_no_tokenizer(name, place, error)) from error
    if tokenizer.chat_template is None:
        raise ModelError(
            f"model {name!r} has no chat template; take its instruction-tuned version, or save a "
            "template with its tokenizer"
        )
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ModelError(f"model {name!r}: its tokenizer has neither eos_token nor pad_token")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_weights(
    name: str, revision: str | None, dtype: str, *, kind: str = CAUSAL, **init: Any
) -> Any:
    """A model without its tokenizer. Arguments and errors as `load_model`.

    kind: transformers' class that loads it.
    """
    import torch
    import transformers
    from safetensors import SafetensorError

    place = _place(name)
    cpu = on_cpu(False)
    # A pickle is never read, whatever the model's folder offers.
    given = {"revision": revision, "dtype": dtype_for(dtype, cpu), "use_safetensors": True} | init
    try:
        model, loading = getattr(transformers, kind).from_pretrained(
            place, output_loading_info=True, **given
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"model {name!r} cannot be loaded: {_one_line(error)}") from error
    _refuse_missing(name, loading)
    if {"device_map", "quantization_config"}.isdisjoint(init):  # those have placed it already
        model = model.to("cpu" if cpu else torch.accelerator.current_accelerator())
    project_contiguous(model)
    if kind == CAUSAL:  # as in training: rounding then falls alike, and so do close decisions
        share_prefixes(model)
    return model.eval()


def check_weights(name: str, init: Mapping[str, Any]) -> None:
    """Look whether a base model is all there, by the names of its weights; none is read.

    Args:
        name: see `ModelSettings`.
        init: arguments of the `from_pretrained` that is to come.

    Raises:
        ModelError: it cannot be loaded, or weights are missing.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    place = _place(name)
    try:
        given = {**init, "device_map": "meta", "output_loading_info": True}
        _, loading = AutoModelForCausalLM.from_pretrained(place, **given)
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelError(f"model {name!r} cannot be loaded: {_one_line(error)}") from error
    finally:
        if bars:
            logging.enable_progress_bar()
    _refuse_missing(name, loading)


def _refuse_missing(name: str, loading: Mapping[str, Any]) -> None:
    missing = sorted(loading["missing_keys"])
    if missing:  # transformers fills them at random, and only warns
        raise ModelError(
            f"model {name!r}: {len(missing)} weights are missing from its files, such as "
            f"{missing[0]}; it is damaged, or no language model"
        )


def _place(name: str) -> str:
    """`resolve`, names that are none refused first."""
    if not name.strip():
        raise ModelError(f"model {name!r} is no name; give a hub id, a folder, or package:NAME")
    if name.startswith(PACKAGE) and not name.removeprefix(PACKAGE).strip():
        raise ModelError(f"model {name!r} names no package; write package:NAME")
    return resolve(name)


def _no_tokenizer(name: str, place: str, error: Exception) -> str:
    if Path(place).is_dir():
        fix = "save one in that folder with tokenizer.save_pretrained, or give another folder"
    else:
        fix = "check the name, or give a folder that holds the model and its tokenizer"
    return f"model {name!r}: no tokenizer that can be read; {fix} ({_one_line(error)})"


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    # A KeyError's text is the key alone.
    return text if isinstance(error, OSError | ValueError) and text else repr(error)
