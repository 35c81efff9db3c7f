"""The `trainer` and `lora` sections: defaults by device, and what reaches TRL and the model."""

import os
from typing import Any

import pytest

from rewriter.config import Config
from rewriter.trainer_limits import NAMES, OWNED, RANGES
from rewriter.trainer_options import buffer_steps, checkpoint_files, grpo_config, lora_config
from rewriter.yaml_source import ConfigError
from tests.trainer_sections import _config, _options


def test_defaults_for_a_cpu() -> None:
    options = _options()
    assert options.use_cpu
    assert not options.bf16
    assert not options.gradient_checkpointing
    assert options.report_to == []
    assert options.beta == 0
    assert options.save_steps == 4
    assert options.logging_steps == 1
    assert options.output_dir == "runs/none/checkpoints"
    assert options.remove_unused_columns is False


@pytest.mark.parametrize("fast", [True, False])
def test_defaults_for_a_gpu(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    import torch

    from rewriter.trainer_options import _defaults, _init

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: fast)
    values = _defaults(_config(), False, {})
    assert values["bf16"] is fast
    assert values["activation_checkpointing"] is True
    assert _init(_config(), False)["dtype"] == ("bfloat16" if fast else "float32")


def test_fp16_alone_is_fp16(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from rewriter.trainer_options import _defaults

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    assert _defaults(_config(), False, {"fp16": True})["bf16"] is False


@pytest.mark.parametrize("name", ["gradient_checkpointing", "activation_checkpointing"])
def test_checkpointing_by_either_name(name: str) -> None:
    for on in (True, False):
        options = _options(**{name: on})
        assert options.gradient_checkpointing is options.activation_checkpointing is on


def test_any_field_reaches_trl() -> None:
    options = _options(
        epsilon_high=0.3,
        chat_template_kwargs={"enable_thinking": False},
        push_to_hub=True,
        learning_rate="1e-5",  # text in YAML 1.1
        max_steps="12",
    )
    assert options.epsilon_high == 0.3
    assert options.chat_template_kwargs == {"enable_thinking": False}
    assert options.push_to_hub is True
    assert options.learning_rate == 1e-5
    assert options.max_steps == 12


def test_every_owned_field_is_a_field() -> None:
    import dataclasses

    from trl import GRPOConfig

    assert set(OWNED) <= {field.name for field in dataclasses.fields(GRPOConfig)}


def test_numbers_are_of_their_fields_type() -> None:
    """1e3 is a number of steps; for a range it must be whole."""
    options = _options(max_steps=1e3, num_generations="4", learning_rate="1e-5", bf16="false")
    assert (options.max_steps, type(options.max_steps)) == (1000, int)
    assert (options.num_generations, options.learning_rate) == (4, 1e-5)
    assert options.bf16 is False
    for name, value, says in [
        ("max_steps", 10.5, "fractional part"),
        ("max_steps", True, "a boolean is no number"),
        ("learning_rate", True, "a boolean is no number"),
    ]:
        with pytest.raises(ConfigError, match=rf"`trainer.{name}`: .*{says}"):
            _options(**{name: value})


@pytest.mark.parametrize(
    ("trainer", "steps"),
    [
        ({}, 1),
        ({"gradient_accumulation_steps": 4}, 1),
        ({"steps_per_generation": 2}, 2),
        ({"num_iterations": 3}, 3),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2, "num_iterations": 2}, 4),
    ],
)
def test_a_buffer_of_rollouts_lasts(trainer: dict[str, Any], steps: int) -> None:
    options = _options({"every": 12}, **trainer)
    assert buffer_steps(options) == steps


def test_a_whole_checkpoint_holds() -> None:
    assert checkpoint_files(_options()) == ["rng_state.pth"]
    adaptive = checkpoint_files(_options(use_adaptive_entropy=True))
    assert adaptive == ["rng_state.pth", "entropy_ctrl_state.json"]


@pytest.mark.parametrize("account", [True, False])
def test_wandb_is_offline_without_an_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, account: bool
) -> None:
    for name in ("WANDB_MODE", "WANDB_DIR", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "")  # remembers what was there, to put it back
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    if account:
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    _options()
    assert "WANDB_DIR" not in os.environ
    _options(report_to="wandb")
    assert os.environ.get("WANDB_MODE") == (None if account else "offline")
    assert os.environ["WANDB_DIR"] == "runs/none"


@pytest.mark.parametrize("name", [*RANGES, *NAMES])
def test_every_checked_field_is_a_field_whose_default_passes(name: str) -> None:
    default = getattr(_options(), name)
    if default is not None:
        _options(**({} if "generation" in name else {name: default}))
    for value in NAMES.get(name, ()):
        _options(**{name: value})


def test_arguments_of_the_model_stand_beside_those_of_its_section() -> None:
    given = {"attn_implementation": "eager", "use_safetensors": False}
    config = _config(model_init_kwargs=given)
    model = config.model.model_copy(update={"revision": "abc", "dtype": "float16"})
    init = grpo_config(config.model_copy(update={"model": model})).model_init_kwargs
    assert init["attn_implementation"] == "eager"
    assert (init["revision"], init["dtype"]) == ("abc", "float16")
    assert init["use_safetensors"] is True  # a pickle is never read


def test_arguments_of_the_model_as_json() -> None:
    init = _options(model_init_kwargs='{"attn_implementation": "eager"}').model_init_kwargs
    assert init["attn_implementation"] == "eager"
    with pytest.raises(ConfigError, match=r"`trainer.model_init_kwargs`: 'eager' is no mapping"):
        _options(model_init_kwargs="eager")


@pytest.mark.parametrize("given", [{}, *({"max_completion_length": n} for n in (24, "24", 24.0))])
def test_rollouts_are_as_long_as_what_is_evaluated(given: dict[str, Any]) -> None:
    from rewriter.evaluation.models import decoding_of

    wanted = 24 if given else 256
    decoding, rollouts = decoding_of(_config(**given)), _options(**given).max_completion_length
    assert decoding.max_new_tokens == rollouts == wanted
    assert type(decoding.max_new_tokens) is type(rollouts) is int


@pytest.mark.parametrize("given", [{"enable_thinking": False}, '{"enable_thinking": false}'])
def test_the_template_is_asked_alike_in_training_and_evaluation(given: Any) -> None:
    from rewriter.evaluation.models import decoding_of

    config = _config(chat_template_kwargs=given)
    wanted = {"enable_thinking": False}
    assert decoding_of(config).chat_template_kwargs == wanted
    assert grpo_config(config).chat_template_kwargs == wanted


def test_lora_takes_any_field_and_every_linear_layer() -> None:
    config = Config.model_validate(
        {"model": {"name": "m"}, "reward": {}, "lora": {"r": 2, "use_rslora": True}}
    )
    lora = lora_config(config)
    assert (lora.r, lora.use_rslora, lora.target_modules) == (2, True, "all-linear")
    wrong = Config.model_validate({"model": {"name": "m"}, "reward": {}, "lora": {"rank": 2}})
    with pytest.raises(ConfigError, match=r"`lora.rank` is not a field of LoraConfig"):
        lora_config(wrong)


@pytest.mark.parametrize("way", [True, "gaussian", "orthogonal"])
def test_a_lora_that_leaves_the_base_model_is_taken(way: Any) -> None:
    config = _config().model_copy(update={"lora": {"init_lora_weights": way, "bias": "none"}})
    assert lora_config(config).init_lora_weights == way
