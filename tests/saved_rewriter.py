"""A rewriter as a finished run leaves it, on the tiny policy, and what a test changes of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from rewriter.checkpoint import MANIFEST, fingerprint
from rewriter.policy import load_tokenizer
from rewriter.prompt import Example, PromptSettings
from tests.tiny import save_policy

PROMPT = PromptSettings(
    system="zeta", examples=(Example(query="beta", rewrite="eta"),), template="kappa {query}"
)
ADAPTER = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def saved(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved rewriter, as a finished run leaves it in `best/`."""
    folder = tmp_path_factory.mktemp("run") / "best"
    adapted(base).save_pretrained(folder)
    load_tokenizer(str(base)).save_pretrained(folder)
    manifest = {
        "format": 1,
        "base": {"name": str(base), "revision": None, "fingerprint": fingerprint(model(base))},
        "step": 20,
        "prompt": PROMPT.model_dump(mode="json"),
        "decoding": {"max_new_tokens": 12, "batch_size": 16, "chat_template_kwargs": None},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "best"))


def model(base: Path, dtype: Any = torch.float32) -> Any:
    return AutoModelForCausalLM.from_pretrained(base, dtype=dtype)


def adapted(base: Path, **options: Any) -> Any:
    """The model with an adapter that changes what it writes."""
    settings = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | options
    torch.manual_seed(1)
    wrapped = get_peft_model(model(base), LoraConfig(**settings))
    for name, weight in wrapped.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    return wrapped


def save_other(base: Path, folder: Path) -> Path:
    """The same kind of model with other weights, the least different that has to be told apart."""
    shutil.copytree(base, folder)
    torch.manual_seed(2)
    nudged = model(base)
    with torch.no_grad():
        for weight in nudged.parameters():
            weight += 0.01 * weight.std() * torch.randn_like(weight)
    nudged.save_pretrained(folder)
    return folder


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder
