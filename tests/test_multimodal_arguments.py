"""Arguments of a page model's `from_pretrained`: quantised models, what has its own setting."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.collection import Collection, Document
from retrievers.index import IndexMismatch
from retrievers.models import ModelError
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings, loading
from tests.tiny_pages import save_page_model

QUERIES = ["the budget", "snow"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_page_model(tmp_path_factory.mktemp("models") / "ColQwen2", "ColQwen2")


def build(model: Path, index: Path | None = None, **chosen: Any) -> MultimodalRetriever:
    texts = ["the budget of the city", "snow in the mountains", "trains"]
    documents = [Document(f"d{number}", "", text) for number, text in enumerate(texts)]
    given = {"model": str(model), "device": "cpu", **chosen}
    settings = MultimodalSettings.model_validate(given)
    return MultimodalRetriever(Collection.from_documents("t", documents), settings, index)


def after_loading(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]) -> None:
    """Have every model changed as soon as transformers has loaded it."""
    load = loading._loaded

    def loaded(*given: Any) -> tuple[str, Any, Any]:
        name, model, processor = load(*given)
        change(model)
        return name, model, processor

    monkeypatch.setattr(loading, "_loaded", loaded)


def test_a_quantised_model_is_not_cast(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers.utils.quantization_config import QuantizationMethod

    expected = build(model).search(QUERIES, 3)

    def quantise(network: Any) -> None:
        # The marks that transformers sets; by the second, its own `to` refuses another type.
        network.is_quantized = True
        network.quantization_method = QuantizationMethod.BITS_AND_BYTES
        network.register_buffer("scale", torch.ones(2, dtype=torch.float64))

    after_loading(monkeypatch, quantise)
    retriever = build(model)
    assert retriever._encoder._model.scale.dtype == torch.float64
    assert retriever.search(QUERIES, 3) == expected


def test_another_model_is_cast(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def add(network: Any) -> None:
        network.is_quantized = False  # as of one that was quantised, and no longer is
        network.register_buffer("scale", torch.ones(2, dtype=torch.float64))

    after_loading(monkeypatch, add)
    assert build(model, model_dtype="float32")._encoder._model.scale.dtype == torch.float32


@pytest.mark.parametrize("fault", [RuntimeError, AssertionError, ValueError])
def test_a_device_that_does_not_take_it(
    fault: type[Exception], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(network: Any) -> None:
        def to(**_: Any) -> None:
            raise fault("no room\nand more")

        network.to = to

    after_loading(monkeypatch, refuse)
    with pytest.raises(ModelError, match=r"cannot be put on the device 'cpu': no room$"):
        build(model)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quantization_config": {"quant_method": "none-such"}}, "none-such"),  # ValueError
        ({"attn_implementation": "none-such"}, "none-such"),  # ValueError
        ({"none_such": 3}, "none_such"),  # TypeError
    ],
)
def test_arguments_that_transformers_refuses(given: dict[str, Any], says: str, model: Path) -> None:
    with pytest.raises(ModelError, match=f"ColQwen2' cannot be loaded: .*{says}"):
        build(model, model_kwargs=given)


def test_a_package_that_quantisation_needs(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ImportError("pip install bitsandbytes")

    monkeypatch.setattr(loading, "_loaded", missing)
    with pytest.raises(ModelError, match="cannot be loaded: pip install bitsandbytes"):
        build(model)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("dtype", "bfloat16", "give `model_dtype`"),
        ("torch_dtype", "bfloat16", "give `model_dtype`"),
        ("revision", "main", "give the setting `revision`"),
        ("device_map", "auto", "give `device`"),
        ("pretrained_model_name_or_path", "x", "give `model`"),
        ("output_loading_info", False, "leave it out"),
    ],
)
def test_what_has_a_setting_of_its_own_is_refused(name: str, value: Any, instead: str) -> None:
    with pytest.raises(ValidationError, match=f"model_kwargs\n.*'{name}' .*{instead}"):
        MultimodalSettings(model_kwargs={name: value})


def test_an_index_of_other_arguments_is_refused(model: Path, tmp_path: Path) -> None:
    build(model, tmp_path / "multimodal", model_kwargs={"attn_implementation": "eager"})
    build(model, tmp_path / "multimodal", model_kwargs={"attn_implementation": "eager"})
    with pytest.raises(
        IndexMismatch, match=r"model_kwargs\.attn_implementation: there 'eager', asked for 'sdpa'"
    ):
        build(model, tmp_path / "multimodal", model_kwargs={"attn_implementation": "sdpa"})
    with pytest.raises(IndexMismatch, match=r"model_kwargs\.attn_implementation: there 'eager'"):
        build(model, tmp_path / "multimodal")
