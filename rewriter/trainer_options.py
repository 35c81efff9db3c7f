"""The `trainer` and `lora` sections: any field of GRPOConfig and LoraConfig, checked early.

Field names and value types are checked against the dataclasses before a model is loaded; defaults
follow the device; fields that the rest of the configuration decides are refused with a pointer.
"""

import dataclasses
import difflib
import os
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from rewriter.config import Config
from rewriter.device import on_cpu
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
    "remove_unused_columns": "the reward, which needs every column",
    "disable_tqdm": "the progress bar of rlqr",
    "restore_callback_states_from_checkpoint": "`--resume`",
}


def grpo_config(config: Config, weights: list[float]) -> Any:
    """The GRPOConfig of a run.

    Args:
        config: the resolved configuration.
        weights: one for each reward function.

    Raises:
        ConfigError: an unknown field, a value of the wrong type, one that TRL refuses, or steps
            that do not fall on the boundaries of TRL's rollout buffer.
    """
    from trl import GRPOConfig

    given = dict(config.trainer)
    _check("trainer", given, GRPOConfig)
    use_cpu = on_cpu(bool(given.get("use_cpu", False)))
    values = _defaults(config, use_cpu) | given
    values |= {
        "output_dir": str(Path(config.output) / "checkpoints"),
        "reward_weights": weights,
        "eval_strategy": "no",
        "remove_unused_columns": False,
        "disable_tqdm": True,
        "use_cpu": use_cpu,
    }
    try:
        options = GRPOConfig(**values)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"trainer: {error}") from error
    _check_boundaries(options, config)
    return options


def lora_config(config: Config) -> Any:
    """The LoraConfig of a run; every linear layer by default.

    Raises:
        ConfigError: an unknown field, a wrong type, or a value that peft refuses.
    """
    from peft import LoraConfig

    given = dict(config.lora)
    _check("lora", given, LoraConfig)
    values = {"task_type": "CAUSAL_LM", "target_modules": "all-linear"} | given
    try:
        return LoraConfig(**values)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"lora: {error}") from error


def buffer_steps(options: Any) -> int:
    """Optimizer steps that one buffer of rollouts lasts.

    TRL generates `steps_per_generation` micro-batches at once, uses them `num_iterations` times,
    and drops what is left of the buffer when it saves. A save elsewhere would lose rollouts, and
    the resumed run would differ from an uninterrupted one.
    """
    micro: int = options.steps_per_generation * options.num_iterations
    accumulation: int = options.gradient_accumulation_steps
    steps = 1
    while steps * accumulation % micro:
        steps += 1
    return steps


def _defaults(config: Config, use_cpu: bool) -> dict[str, Any]:
    """What differs from TRL's own defaults."""
    from rewriter.device import dtype_for

    bf16 = not use_cpu and str(dtype_for("auto", use_cpu)) == "torch.bfloat16"
    init = {"trust_remote_code": config.model.trust_remote_code} | config.model.init
    if config.model.revision is not None:
        init["revision"] = config.model.revision
    init["dtype"] = str(dtype_for(config.model.dtype, use_cpu)).removeprefix("torch.")
    return {
        "bf16": bf16,
        "gradient_checkpointing": not use_cpu,
        "report_to": "none",
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.evaluation.every,
        "save_total_limit": 2,
        "beta": 0.0,
        "model_init_kwargs": init,
    }


def _check(section: str, given: dict[str, Any], wanted: Any) -> None:
    fields = {field.name for field in dataclasses.fields(wanted) if field.init}
    hints = get_type_hints(wanted)
    for name, value in given.items():
        if section == "trainer" and name in OWNED:
            raise ConfigError(f"`trainer.{name}` is decided by {OWNED[name]}; leave it out")
        if name not in fields:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise ConfigError(f"`{section}.{name}` is not a field of {wanted.__name__}{hint}")
        _check_type(f"{section}.{name}", value, hints.get(name, Any))


def _check_type(key: str, value: Any, hint: Any) -> None:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError):
        return  # a type of a package that is not there: the dataclass itself will judge
    try:
        adapter.validate_python(value, strict=False)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"`{key}`: {reason} (given: {value!r})") from error


def _check_boundaries(options: Any, config: Config) -> None:
    step = buffer_steps(options)
    places = {"evaluation.every": config.evaluation.every}
    if options.save_strategy == "steps":
        places["trainer.save_steps"] = options.save_steps
    for name, value in places.items():
        if value < 1 or value % step:
            raise ConfigError(
                f"`{name}` is {value:g}, but must be a multiple of {step}: one buffer of rollouts "
                f"lasts {step} steps (steps_per_generation {options.steps_per_generation} × "
                f"num_iterations {options.num_iterations} ÷ gradient_accumulation_steps "
                f"{options.gradient_accumulation_steps}), and a save in its middle would lose the "
                "rest"
            )
    if "wandb" in options.report_to and not _wandb_account():
        # Without an account wandb asks for one at the keyboard; offline it writes to the disk.
        os.environ.setdefault("WANDB_MODE", "offline")


def _wandb_account() -> bool:
    import netrc

    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_MODE"):
        return True
    try:
        return bool(netrc.netrc().authenticators("api.wandb.ai"))
    except (FileNotFoundError, netrc.NetrcParseError):
        return False
