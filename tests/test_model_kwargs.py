"""Arguments of a model's loading, given from Python as from a file."""

from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.model_kwargs import as_json
from retrievers.semantic import SemanticSettings
from tests import semantic_engines
from tests.semantic_engines import build

models, model = semantic_engines.models, semantic_engines.model  # fixtures


def test_a_type_of_torch_is_its_name() -> None:
    import torch

    given = {"dtype": torch.float32, "quantization_config": {"types": (torch.bfloat16, 4, None)}}
    expected = {"dtype": "float32", "quantization_config": {"types": ["bfloat16", 4, None]}}
    assert as_json(given) == expected
    settings = SemanticSettings(model_kwargs=given)
    assert settings.model_kwargs == expected
    assert settings.model_dump(mode="json")["model_kwargs"] == expected


def test_both_ways_to_write_it_are_one_model(model: str) -> None:
    import torch

    named = build(["w1"], model, model_kwargs={"dtype": "float32"})
    typed = build(["w1"], model, model_kwargs={"dtype": torch.float32})
    assert named.fingerprint == typed.fingerprint
    half = build(["w1"], model, model_kwargs={"dtype": torch.bfloat16})
    assert half.fingerprint != named.fingerprint


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"config": object()}, r"model_kwargs\.config is <object .*, a object; write it as a text"),
        ({"a": {"b": [1, {2, 3}]}}, r"model_kwargs\.a\.b\[1\] is \{2, 3\}, a set; write it"),
        ({"scale": float("nan")}, r"model_kwargs\.scale is nan, a float"),
    ],
)
def test_what_no_file_can_hold(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        SemanticSettings(model_kwargs=given)
