"""A run whose adapter does not train ends with an error."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from rewriter.adapter_guard import AdapterGuard, FrozenAdapterError
from rewriter.checkpoint import attach
from tests import tiny

ARGUMENTS = SimpleNamespace(fsdp=[], deepspeed_plugin=None)
STATE = SimpleNamespace(global_step=0)


@pytest.fixture
def adapter(tmp_path: Path) -> dict[str, str]:
    """A finished run's adapter to start from."""
    run = tiny.train_tiny(tmp_path, output=str(tmp_path / "before"), trainer={"max_steps": 2})
    return {"adapter": str(run.best)}


def _load(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    """Start from an adapter in another way than the right one."""
    monkeypatch.setattr("rewriter.checkpoint.attach", load)


def test_an_adapter_that_trains_passes(tmp_path: Path, adapter: dict[str, str]) -> None:
    run = tiny.train_tiny(tmp_path, model=adapter)
    assert len(tiny.steps(run)) == 4


def test_a_frozen_adapter_ends_the_run(
    tmp_path: Path, adapter: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _load(monkeypatch, lambda model, folder, trainable: attach(model, folder))
    with pytest.raises(FrozenAdapterError, match=r"no LoRA weight is trainable.*`model.adapter`"):
        tiny.train_tiny(tmp_path, model=adapter)


def test_an_adapter_beside_the_one_that_is_used_ends_the_run(
    tmp_path: Path, adapter: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two adapters, the trainable one without a part in the loss."""

    def twice(model: Any, folder: Path, trainable: bool) -> Any:
        wrapped = PeftModel.from_pretrained(model, folder, is_trainable=True)
        wrapped.add_adapter("second", LoraConfig(r=2, target_modules="all-linear"))
        wrapped.base_model.set_adapter("second", inference_mode=True)
        for name, weight in wrapped.named_parameters():
            weight.requires_grad = ".default." in name
        # Something must train, or backward would complain by itself.
        wrapped.get_input_embeddings().weight.requires_grad = True
        return wrapped

    _load(monkeypatch, twice)
    with pytest.raises(FrozenAdapterError, match="step 1: no gradient reaches the LoRA weights"):
        tiny.train_tiny(tmp_path, model=adapter)


def test_a_learning_rate_of_0_in_the_warm_up_is_no_alarm(tmp_path: Path) -> None:
    trainer = {"warmup_steps": 2, "lr_scheduler_type": "constant_with_warmup"}
    run = tiny.train_tiny(tmp_path, trainer=trainer)
    assert [row["learning_rate"] for row in tiny.steps(run)] == [0, 0.005, 0.01, 0.01]


def _wrapped() -> Any:
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4))
    model = get_peft_model(layer, LoraConfig(r=2, target_modules=["0"]))
    return model


def _step(model: Any, optimizer: Any, guard: AdapterGuard) -> None:
    (model(torch.ones(1, 4)) - 1).square().sum().backward()
    guard.on_pre_optimizer_step(ARGUMENTS, STATE, None, model=model, optimizer=optimizer)
    optimizer.step()
    guard.on_step_end(ARGUMENTS, STATE, None, model=model)


def test_a_model_that_was_wrapped_again_is_not_what_the_optimizer_holds() -> None:
    model, other = _wrapped(), _wrapped()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    with pytest.raises(FrozenAdapterError, match=r"2 of 2 trainable LoRA weights are not in the o"):
        AdapterGuard().on_train_begin(ARGUMENTS, STATE, None, model=model, optimizer=optimizer)
    # And where weights are sharded, so that nobody can tell before: after the first step.
    sharded = SimpleNamespace(fsdp=["full_shard"], deepspeed_plugin=None)
    guard = AdapterGuard()
    guard.on_train_begin(sharded, STATE, None, model=model, optimizer=optimizer)
    with pytest.raises(FrozenAdapterError, match="left every LoRA weight as it was"):
        _step(model, optimizer, guard)


def test_steps_that_cannot_move_the_adapter_prove_nothing() -> None:
    model = _wrapped()
    guard = AdapterGuard()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    _step(model, optimizer, guard)  # the learning rate is 0
    assert not guard.proved
    optimizer.param_groups[0]["lr"] = 0.1
    for weight in model.parameters():
        weight.grad = None if weight.grad is None else weight.grad * float("inf")
    guard.on_pre_optimizer_step(ARGUMENTS, STATE, None, model=model, optimizer=optimizer)
    guard.on_step_end(ARGUMENTS, STATE, None, model=model)  # a loss scale skips such a step
    assert not guard.proved
    optimizer.zero_grad()
    _step(model, optimizer, guard)
    assert guard.proved
