"""The `trainer` and `lora` sections: any field of GRPOConfig and LoraConfig, checked early.

Field names and value types are checked against the dataclasses before a model is loaded; defaults
follow the device; fields that the rest of the configuration decides are refused with a pointer.
`config.where(key)` names a key with its file and line.
"""

import dataclasses
import difflib
import math
import os
from collections.abc import Callable
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


# Field → (test, what is allowed).
RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "num_generations": (lambda n: n >= 2, "2 or more: rewards are compared within a group"),
    "per_device_train_batch_size": (lambda n: n >= 1, "1 or more"),
    "gradient_accumulation_steps": (lambda n: n >= 1, "1 or more"),
    "max_completion_length": (lambda n: n >= 1, "1 or more"),
    "temperature": (lambda t: 0 < t < math.inf, "above 0: equal completions teach nothing"),
    "learning_rate": (lambda rate: 0 <= rate < math.inf, "0 or more"),
    "seed": (lambda seed: 0 <= seed < 2**32, "between 0 and 2**32 - 1"),
}


def grpo_config(config: Config) -> Any:
    """The GRPOConfig of a run; its `reward_weights` are set once the reward is built.

    Args:
        config: the resolved configuration.

    Raises:
        ConfigError: an unknown field, a value of the wrong type, one that TRL refuses, or steps
            that do not fall on the boundaries of TRL's rollout buffer.
    """
    from trl import GRPOConfig

    given = _checked(config, "trainer", GRPOConfig)
    _check_ranges(config, given)
    use_cpu = on_cpu(bool(given.get("use_cpu", False)))
    values = _defaults(config, use_cpu) | given
    values |= {
        "output_dir": str(Path(config.output) / "checkpoints"),
        "eval_strategy": "no",
        "remove_unused_columns": False,
        "disable_tqdm": True,
        "use_cpu": use_cpu,
    }
    try:
        options = GRPOConfig(**values)
    except (ValueError, TypeError, ArithmeticError, ImportError) as error:
        raise _refused(config, "trainer", error) from error
    _check_boundaries(options, config)
    if "wandb" in options.report_to:
        _set_up_wandb(config)
    return options


def lora_config(config: Config) -> Any:
    """The LoraConfig of a run; every linear layer by default.

    Raises:
        ConfigError: an unknown field, a wrong type, or a value that peft refuses.
    """
    from peft import LoraConfig

    given = _checked(config, "lora", LoraConfig)
    if given and config.model.adapter is not None:
        raise ConfigError(
            f"{config.where('lora')}: `model.adapter` brings its own LoRA settings; leave these out"
        )
    values = {"task_type": "CAUSAL_LM", "target_modules": "all-linear"} | given
    try:
        return LoraConfig(**values)
    except (ValueError, TypeError) as error:
        raise _refused(config, "lora", error) from error


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


def checkpoint_files(options: Any) -> list[str]:
    """What a whole checkpoint holds beside the trainer's state, some of it written after that."""
    ranks = range(options.world_size)
    files = [f"rng_state_{rank}.pth" for rank in ranks] if len(ranks) > 1 else ["rng_state.pth"]
    return [*files, *(["entropy_ctrl_state.json"] if options.use_adaptive_entropy else [])]


def _defaults(config: Config, use_cpu: bool) -> dict[str, Any]:
    """What differs from TRL's own defaults."""
    from rewriter.device import dtype_for

    bf16 = not use_cpu and str(dtype_for("auto", use_cpu)) == "torch.bfloat16"
    init = {
        "trust_remote_code": config.model.trust_remote_code,
        "use_safetensors": True,  # never a pickle
        **config.model.init,
    }
    if config.model.revision is not None:
        init["revision"] = config.model.revision
    init["dtype"] = str(dtype_for(config.model.dtype, use_cpu)).removeprefix("torch.")
    return {
        "bf16": bf16,
        # By its new name; the old one still counts where it is given.
        "activation_checkpointing": config.trainer.get("gradient_checkpointing", not use_cpu),
        "report_to": "none",
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.evaluation.every,
        "save_total_limit": 2,
        "beta": 0.0,
        "model_init_kwargs": init,
    }


def _check_ranges(config: Config, given: dict[str, Any]) -> None:
    """What TRL would find out only in the middle of the first step, or divide by."""
    for name, (holds, wanted) in RANGES.items():
        value = given.get(name)
        if value is not None and not holds(value):
            where = config.where(f"trainer.{name}")
            raise ConfigError(f"{where} is {value!r}; it must be {wanted}")


def _checked(config: Config, section: str, wanted: Any) -> dict[str, Any]:
    """The section's values, those that YAML read as text made numbers where numbers are wanted."""
    fields = {field.name for field in dataclasses.fields(wanted) if field.init}
    hints = get_type_hints(wanted)
    values = {}
    for name, value in getattr(config, section).items():
        where = config.where(f"{section}.{name}")
        if section == "trainer" and name in OWNED:
            raise ConfigError(f"{where} is decided by {OWNED[name]}; leave it out")
        if name not in fields:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise ConfigError(f"{where} is not a field of {wanted.__name__}{hint}")
        values[name] = _typed(where, value, hints.get(name, Any))
    return values


def _refused(config: Config, section: str, error: Exception) -> ConfigError:
    """What the dataclass itself says, on one line: it seldom names the field."""
    return ConfigError(f"{config.where(section)}: {' '.join(str(error).split())}")


def _typed(where: str, value: Any, hint: Any) -> Any:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError):
        return value  # a type of a package that is not there: the dataclass itself will judge
    try:
        read = adapter.validate_python(value, strict=False)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"{where}: {reason} (given: {value!r})") from error
    # "1e-5" is text in YAML 1.1; the dataclass would take it as it is.
    return read if isinstance(value, str) and isinstance(read, int | float) else value


def _check_boundaries(options: Any, config: Config) -> None:
    step = buffer_steps(options)
    places = {"evaluation.every": config.evaluation.every}
    if options.save_strategy == "steps":
        places["trainer.save_steps"] = options.save_steps
    elif options.save_strategy != "no":
        raise ConfigError(
            f"{config.where('trainer.save_strategy')} is {str(options.save_strategy.value)!r}: "
            'only "steps" saves where no rollout is lost; "no" saves nothing to resume from'
        )
    if options.save_only_model:
        raise ConfigError(
            f"{config.where('trainer.save_only_model')}: a checkpoint without the optimizer cannot "
            "be resumed; leave it out (`best/` holds the adapter alone)"
        )
    for name, value in places.items():
        if value < 1 or value % step:
            raise ConfigError(
                f"{config.where(name)} is {value:g}, but must be a multiple of {step}: one buffer "
                f"of rollouts lasts {step} steps (steps_per_generation "
                f"{options.steps_per_generation} × num_iterations {options.num_iterations} ÷ "
                f"gradient_accumulation_steps {options.gradient_accumulation_steps}), and a save "
                "in its middle would lose the rest"
            )


def _set_up_wandb(config: Config) -> None:
    """Into the run's folder; without an account to the disk only: wandb would ask for one."""
    os.environ.setdefault("WANDB_DIR", config.output)
    if not _wandb_account() and not os.environ.get("WANDB_MODE"):
        os.environ["WANDB_MODE"] = "offline"


def _wandb_account() -> bool:
    import netrc

    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        return bool(netrc.netrc().authenticators("api.wandb.ai"))
    except (FileNotFoundError, netrc.NetrcParseError):
        return False
