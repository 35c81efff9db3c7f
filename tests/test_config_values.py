"""The configuration: values as texts, and what is written reads back equal."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rewriter.config import load
from rewriter.yaml_source import Source, dump, scalar

CONFIGS = sorted(
    path
    for path in (Path(__file__).parent.parent / "configs").glob("**/*.yaml")
    if path.parent.name != "ablations"  # grids: test_ablation_grid.py
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("5", 5),
        ("-1", -1),
        ("1_000", 1000),
        (".5", 0.5),
        (".inf", math.inf),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", ""),
        ("''", ""),
        ("'5'", "5"),
        ("[raw, untrained]", ["raw", "untrained"]),
        ("{a: 1e3}", {"a": 1000.0}),
        ("Note: be short", "Note: be short"),
        ("- a", "- a"),
        ("a #1", "a #1"),
        ("{query", "{query"),
        ("@x", "@x"),
    ],
)
def test_scalar(text: str, value: Any) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize("text", ["1e5", "010", "1:30", "2024-01-01", "no", "0x1F", "~", "1_0"])
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    assert yaml.safe_load(dump({"a": text})) == {"a": text}
    assert scalar("{" + dump({"a": text}).strip() + "}") == {"a": text}


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "1e5"]), PLAIN, max_size=3))
def test_dump_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, values: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(dump(values), encoding="utf-8", newline="")
    assert Source(path).values == values


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_config_reads_back_equal(path: Path, tmp_path: Path) -> None:
    config = load(path)
    written = tmp_path / "config.yaml"
    written.write_text(config.to_yaml(), encoding="utf-8")
    assert load(written) == config
    assert load(written).to_yaml() == config.to_yaml()
    # Other readers of YAML see the same.
    assert yaml.safe_load(config.to_yaml()) == config.dump()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_config_is_accepted_by_trl_and_peft(path: Path) -> None:
    from rewriter.trainer_options import grpo_config, lora_config

    config = load(path, ["--trainer.use_cpu", "true", "--trainer.report_to", "none"])
    options = grpo_config(config)
    assert options.max_steps == config.trainer.get("max_steps", -1)
    assert lora_config(config).r == config.lora.get("r", 8)


def test_configs_differ_where_their_settings_do(file: Path) -> None:
    assert load(file) == load(file)
    assert load(file) == load(file, ["--retrievers.lexical.k1", "1.5"])  # the default
    assert load(file) != load(file, ["--retrievers.lexical.k1", "1.6"])
