"""A run of other data and settings: what is said, refused before it begins, and comes out alike."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from retrievers.models import ModelError
from rewriter import result, training
from rewriter.evaluation import EvaluationError
from rewriter.preflight import PreflightError
from rewriter.yaml_source import ConfigError
from tests import tiny


@pytest.mark.parametrize("rows", [5, 4])
def test_prompts_that_do_not_fill_a_batch_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: int
) -> None:
    tiny.save_collection(tmp_path / "collection", train=rows)
    run = tiny.train_tiny(tmp_path, trainer={"max_steps": -1, "num_train_epochs": 1})
    assert ("4 of 5 training queries used an epoch (1 dropped)" in caplog.text) == (rows == 5)
    assert len(tiny.steps(run)) == 2
    assert len({row["query_id"] for row in tiny.lines(run.completions(0))}) == 4


def test_the_collections_conventions_hold_in_reward_and_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def noted(function: Any, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            seen.append((name, named[name]))
            return function(*given, **named)

        return call

    panel, summarise = training.RewardPanel, result.summarise
    monkeypatch.setattr("rewriter.training.RewardPanel", noted(panel, "drop_query_id"))
    monkeypatch.setattr("rewriter.result.summarise", noted(summarise, "subset"))
    with pytest.raises(EvaluationError, match="no query has a column 'colour'"):
        tiny.train_tiny(tmp_path, collection={"subset": "colour"})
    assert not (tmp_path / "run").exists()
    conventions = {"subset": "origin", "drop_query_id": True}
    tiny.train_tiny(tmp_path, collection=conventions, trainer={"max_steps": 1})
    assert seen == [("drop_query_id", True), ("subset", "origin")]


def test_fewer_prompts_than_a_batch_name_the_setting_to_lower(tmp_path: Path) -> None:
    tiny.save_collection(tmp_path / "collection", train=1)
    with pytest.raises(ConfigError, match=r"1 training queries.*takes 2.*per_device_train_batch"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_damaged_base_model_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """transformers would make up what is missing, warn, and train on it."""
    weights = load_file(tiny.save_policy(tmp_path / "policy") / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, tmp_path / "policy" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights are missing .*model\.norm\.weight"):
        tiny.train_tiny(tmp_path)
    (tmp_path / "policy" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"cannot be loaded: .*safetensors"):
        tiny.train_tiny(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_prompt_without_room_for_a_rollout_is_named(tmp_path: Path) -> None:
    # The context has 256 tokens; a query has two words, its turn three tokens more, with a rewrite.
    with pytest.raises(PreflightError, match=r"training query 'q\d': its prompt has \d+ tokens"):
        tiny.train_tiny(tmp_path, trainer={"max_completion_length": 252})
    assert not (tmp_path / "run").exists()


def test_an_evaluation_batch_of_one_with_many_generations(tmp_path: Path) -> None:
    run = tiny.train_tiny(
        tmp_path, evaluation={"batch_size": 1}, trainer={"num_generations": 8, "max_steps": 2}
    )
    assert [row["n"] for row in tiny.lines(run.evaluations)] == [2, 2]


def test_a_gradient_reaches_the_adapter_with_and_without_checkpointing(tmp_path: Path) -> None:
    norms = []
    for place, on in enumerate((True, False)):
        trainer = {"gradient_checkpointing": on, "max_steps": 2}
        run = tiny.train_tiny(tmp_path, output=str(tmp_path / f"run{place}"), trainer=trainer)
        norms.append([row["grad_norm"] for row in tiny.steps(run)])
    assert min(norms[0]) > 0
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


@pytest.mark.parametrize("fast", [True, False])
def test_the_defaults_run_on_a_cpu_with_and_without_bf16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    monkeypatch.setattr("rewriter.device._cpu_computes_bf16", lambda: fast)
    values = tiny.settings(tmp_path)
    del values["model"]["dtype"], values["trainer"]["use_cpu"]
    values["trainer"]["max_steps"] = 2
    from rewriter.config import Config
    from rewriter.training import train

    kept: list[Any] = []
    monkeypatch.setattr("rewriter.best_adapter.BestAdapter.on_train_begin", _keep(kept))
    train(Config.model_validate(values))
    (model,) = kept
    dtypes = {"lora_" in name: weight.dtype for name, weight in model.named_parameters()}
    assert dtypes == {True: torch.float32, False: torch.bfloat16 if fast else torch.float32}


def _keep(kept: list[Any]) -> Any:
    from rewriter.best_adapter import BestAdapter

    begin = BestAdapter.on_train_begin

    def on_train_begin(self: Any, *positional: Any, model: Any = None, **named: Any) -> None:
        kept.append(model)
        begin(self, *positional, model=model, **named)

    return on_train_begin
