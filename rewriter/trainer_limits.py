"""What the `trainer` section may not say: decided elsewhere, or such as no run can use."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewriter.config import Config
from rewriter.yaml_source import ConfigError

# Decided elsewhere: field → where.
OWNED = {
    "output_dir": "`output`",
    "reward_weights": "`reward.backends.NAME.weight`",
    "eval_strategy": "`evaluation.every`",
    "eval_steps": "`evaluation.every`",
    "do_eval": "`evaluation.every`",
    "load_best_model_at_end": "the best adapter by held-out NDCG@3, which is always kept",
    "metric_for_best_model": "held-out NDCG@3, which is always used",
    "resume_from_checkpoint": "`--resume`",
    "trust_remote_code": "`model.trust_remote_code`",
    "remove_unused_columns": "the reward, which needs every column",
    "disable_tqdm": "the progress bar of rlqr",
    "restore_callback_states_from_checkpoint": "`--resume`",
    "ignore_data_skip": "`--resume`, which goes on with the prompts that were next",
    "eval_on_start": "`evaluation`: before the first step there always is one",
}

# Field → (test, what is allowed).
RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "num_generations": (lambda n: n >= 2, "2 or more: rewards are compared within a group"),
    "per_device_train_batch_size": (lambda n: n >= 1, "1 or more"),
    "gradient_accumulation_steps": (lambda n: n >= 1, "1 or more"),
    "steps_per_generation": (lambda n: n >= 1, "1 or more"),
    "generation_batch_size": (lambda n: n >= 1, "1 or more"),
    "num_iterations": (lambda n: n >= 1, "1 or more"),
    "max_completion_length": (lambda n: n >= 1, "1 or more"),
    "max_steps": (lambda n: n >= 1 or n == -1, "1 or more, or -1 to count epochs"),
    "num_train_epochs": (lambda n: 0 < n < math.inf, "above 0"),
    "logging_steps": (lambda n: n > 0, "above 0"),
    "temperature": (lambda t: 0 < t < math.inf, "above 0: equal completions teach nothing"),
    "top_p": (lambda p: 0 < p <= 1, "above 0 and at most 1"),
    "top_k": (lambda k: k >= 0, "0 or more; 0 leaves every token in"),
    "min_p": (lambda p: 0 <= p <= 1, "between 0 and 1"),
    "repetition_penalty": (lambda r: 0 < r < math.inf, "above 0"),
    "learning_rate": (lambda rate: 0 <= rate < math.inf, "0 or more"),
    "beta": (lambda beta: 0 <= beta < math.inf, "0 or more"),
    "max_grad_norm": (lambda norm: 0 <= norm < math.inf, "0 or more; 0 does not clip"),
    "seed": (lambda seed: 0 <= seed < 2**32, "between 0 and 2**32 - 1"),
}
# Field → what TRL takes; it looks only when it computes the first loss.
NAMES: dict[str, tuple[Any, ...]] = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "scale_rewards": ("group", "batch", "none", True, False),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
}
# Fields that TRL lets be empty and a run cannot do without.
NEEDED = ("max_completion_length",)
# Ways to begin a LoRA that take their part out of the base model's weights.
CHANGES_BASE = ("pissa", "olora", "corda", "loftq")
TRACKERS = ("wandb", "tensorboard", "trackio")


def check_values(config: Config, given: Mapping[str, Any]) -> None:
    """Refuse what TRL would find out only in the middle of the first step, or divide by.

    Args:
        config: names the places.
        given: the `trainer` section, each value of its field's type.

    Raises:
        ConfigError: names the value, its place and what is allowed.
    """
    for name, value in given.items():
        where = config.where(f"trainer.{name}")
        if value is None and name in NEEDED:
            raise ConfigError(f"{where} is null; give a number, or leave it out")
        holds, wanted = RANGES.get(name, (None, ""))
        if value is not None and holds is not None and not holds(value):
            raise ConfigError(f"{where} is {value!r}; it must be {wanted}")
        if name in NAMES and value not in NAMES[name]:
            allowed = ", ".join(str(one) for one in NAMES[name])
            raise ConfigError(f"{where} is {value!r}; it must be one of {allowed}")


def check_adapter(config: Config, given: Mapping[str, Any]) -> None:
    """Refuse a LoRA that changes the base model itself.

    Without the adapter it would not be the untrained model that the result compares with, and the
    adapter would fit no other copy of the base.

    Args:
        config: names the places.
        given: the `lora` section, each value of its field's type.

    Raises:
        ConfigError: names the value and its place.
    """
    if given.get("bias", "none") != "none":
        raise ConfigError(
            f"{config.where('lora.bias')} is {given['bias']!r}, which trains biases of the base "
            'model itself; only "none" leaves it as it is'
        )
    begun = given.get("init_lora_weights")
    if isinstance(begun, str) and begun.startswith(CHANGES_BASE):
        raise ConfigError(
            f"{config.where('lora.init_lora_weights')} is {begun!r}, which changes the weights of "
            'the base model itself; take true, "gaussian" or "orthogonal"'
        )


def check_trackers(config: Config, names: Sequence[str]) -> None:
    """Refuse trackers that there are not, and those of README that are not installed.

    Raises:
        ConfigError: names the tracker, and what to install or which there are.
    """
    from transformers.integrations import integration_utils

    known, ready = (
        integration_utils.INTEGRATION_TO_CALLBACK,
        integration_utils.get_available_reporting_integrations(),
    )
    for name in names:
        where = config.where("trainer.report_to")
        if name not in known:
            raise ConfigError(f"{where} is {name!r}; there are: {', '.join(known)}")
        if name in TRACKERS and name not in ready:
            raise ConfigError(f"{where} is {name!r}, which is not installed: pip install {name}")
