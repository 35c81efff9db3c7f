"""The `trainer` and `lora` sections: what is refused before a model is loaded."""

from typing import Any

import pytest

from rewriter.config import Config
from rewriter.trainer_options import grpo_config, lora_config
from rewriter.yaml_source import ConfigError
from tests.trainer_sections import _config, _options


@pytest.mark.parametrize(
    ("trainer", "says"),
    [
        (
            {"learning_rat": 1},
            r"`trainer.learning_rat` is not a field of GRPOConfig; did you mean `",
        ),
        ({"learning_rate": "fast"}, r"`trainer.learning_rate`: .*\(given: 'fast'\)"),
        ({"num_generations": [8]}, r"`trainer.num_generations`: "),
        ({"num_generations": 3}, r"`trainer`: .*divisible by num_generations"),
        ({"output_dir": "x"}, r"`trainer.output_dir` is decided by `output`; leave it out"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(trainer: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _options(**trainer)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("num_generations", 0, "2 or more"),
        ("per_device_train_batch_size", 0, "1 or more"),
        ("max_completion_length", 0, "1 or more"),
        ("temperature", 0.0, "above 0"),
        ("learning_rate", -1.0, "0 or more"),
        ("learning_rate", float("nan"), "0 or more"),
        ("seed", -1, "between 0 and"),
        ("seed", 2**40, "between 0 and"),
        ("num_iterations", 0, "1 or more"),
        ("steps_per_generation", 0, "1 or more"),
        ("generation_batch_size", 0, "1 or more"),
        ("max_steps", 0, "1 or more, or -1"),
        ("num_train_epochs", 0.0, "above 0"),
        ("logging_steps", 0, "above 0"),
        ("top_p", 0.0, "above 0 and at most 1"),
        ("top_k", -1, "0 or more"),
        ("min_p", 1.5, "between 0 and 1"),
        ("repetition_penalty", 0.0, "above 0"),
        ("beta", -0.1, "0 or more"),
    ],
)
def test_values_that_no_run_can_use(name: str, value: float, allowed: str) -> None:
    with pytest.raises(ConfigError, match=rf"`trainer.{name}` is .*; it must be {allowed}"):
        _options(**{name: value})


@pytest.mark.parametrize(
    ("trainer", "says"),
    [
        ({"loss_type": "dpo"}, "`trainer.loss_type` is 'dpo'; it must be one of grpo, "),
        ({"scale_rewards": "std"}, "`trainer.scale_rewards` is 'std'; it must be one of group, "),
        ({"max_completion_length": None}, "`trainer.max_completion_length` is null; give a number"),
        ({"report_to": "wandbb"}, "`trainer.report_to` is 'wandbb'; there are: .*wandb"),
        ({"ignore_data_skip": True}, "`trainer.ignore_data_skip` is decided by `--resume`"),
        ({"eval_on_start": True}, "`trainer.eval_on_start` is decided by `evaluation`"),
    ],
)
def test_what_trl_would_find_in_the_middle_of_a_step(trainer: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _options(**trainer)


@pytest.mark.parametrize(
    ("evaluation", "trainer", "says"),
    [
        (
            {"every": 5},
            {"num_iterations": 2},
            r"`evaluation.every` is 5, but must be a multiple of",
        ),
        ({"every": 4}, {"num_iterations": 2, "save_steps": 3}, r"`trainer.save_steps` is 3"),
        ({"every": 4}, {"save_steps": 0.1}, r"`trainer.save_steps` is 0.1"),
    ],
)
def test_saves_off_the_buffers_boundary_are_refused(
    evaluation: dict[str, Any], trainer: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        _options(evaluation, **trainer)


def test_checkpoints_that_could_not_be_resumed_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be resumed"):
        _options(save_only_model=True)
    with pytest.raises(ConfigError, match=r"'epoch': only .steps."):
        _options(save_strategy="epoch")


def test_a_tracker_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "transformers.integrations.integration_utils.get_available_reporting_integrations",
        lambda: ["wandb"],
    )
    with pytest.raises(ConfigError, match=r"'trackio', which is not installed: pip install track"):
        _options(report_to="trackio")


@pytest.mark.parametrize("name", ["dtype", "torch_dtype", "revision", "trust_remote_code"])
def test_what_a_key_of_the_model_decides_is_given_there(name: str) -> None:
    """Given elsewhere, neither evaluation nor a saved manifest would know of it."""
    with pytest.raises(ConfigError, match=rf"model_init_kwargs.{name}. is decided by .model\."):
        _options(model_init_kwargs={name: "float16"})
    with pytest.raises(ValueError, match=rf"{name} is decided by .model\."):
        Config.model_validate({"model": {"name": "m", "init": {name: "float16"}}, "reward": {}})
    with pytest.raises(ConfigError, match=r"decided by .model.trust_remote_code"):
        _options(trust_remote_code=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_completion_length": None}, "is null"),
        ({"max_completion_length": "many"}, "valid integer"),
        ({"max_completion_length": 0}, "1 or more"),
        ({"max_completion_length": True}, "a boolean is no number"),
        ({"chat_template_kwargs": "enable_thinking"}, "is no mapping"),
        ({"chat_template_kwargs": [1]}, "is no mapping|valid"),
    ],
)
def test_evaluation_refuses_what_training_does(given: dict[str, Any], says: str) -> None:
    from rewriter.evaluation.models import decoding_of

    for read in (decoding_of, grpo_config):
        with pytest.raises(ConfigError, match=says):
            read(_config(**given))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bias", "all"),
        ("bias", "lora_only"),
        *(("init_lora_weights", way) for way in ("pissa", "olora", "corda", "loftq")),
    ],
)
def test_a_lora_that_changes_the_base_model_is_refused(name: str, value: str) -> None:
    config = _config().model_copy(update={"lora": {name: value}})
    with pytest.raises(ConfigError, match=rf"`lora.{name}` is '{value}', which"):
        lora_config(config)
