"""The `trainer` and `lora` sections: any field of GRPOConfig and LoraConfig, checked early.

Field names and value types are checked against the dataclasses before a model is loaded; defaults
follow the device; fields that the rest of the configuration decides are refused with a pointer.
`config.where(key)` names a key with its file and line.
"""

import dataclasses
import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from rewriter.config import Config
from rewriter.device import dtype_for, on_cpu
from rewriter.trainer_limits import NAMES, OWNED, check_adapter, check_trackers, check_values
from rewriter.trainer_values import COMPLETION_TOKENS, MAPPINGS, mapping, model_init, typed
from rewriter.yaml_source import ConfigError


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
    check_values(config, given)
    use_cpu = on_cpu(bool(given.get("use_cpu", False)))
    values = _defaults(config, use_cpu, given) | given
    values["model_init_kwargs"] = _init(config, use_cpu)
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
    check_trackers(config, options.report_to)
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
    check_adapter(config, given)
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


def _defaults(config: Config, use_cpu: bool, given: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from TRL's own defaults."""
    bf16 = not use_cpu and str(dtype_for("auto", use_cpu)) == "torch.bfloat16"
    return {
        "bf16": bf16 and not given.get("fp16"),
        # By its new name; the old one still counts where it is given.
        "activation_checkpointing": given.get("gradient_checkpointing", not use_cpu),
        "report_to": "none",
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.evaluation.every,
        "save_total_limit": 2,
        "beta": 0.0,
        "max_completion_length": COMPLETION_TOKENS,
    }


def _init(config: Config, use_cpu: bool) -> dict[str, Any]:
    """How the model is loaded."""
    settings = config.model
    return {
        "trust_remote_code": settings.trust_remote_code,
        "dtype": str(dtype_for(settings.dtype, use_cpu)).removeprefix("torch."),
        **({} if settings.revision is None else {"revision": settings.revision}),
        **model_init(config),
    }


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
        known = section == "trainer" and value in NAMES.get(name, ())  # TRL's hints are narrower
        values[name] = value if known else typed(where, value, hints.get(name, Any))
        if section == "trainer" and name in MAPPINGS:
            values[name] = mapping(config, name)
    return values


def _refused(config: Config, section: str, error: Exception) -> ConfigError:
    """What the dataclass itself says, on one line: it seldom names the field."""
    return ConfigError(f"{config.where(section)}: {' '.join(str(error).split())}")


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
