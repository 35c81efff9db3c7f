"""Configurations of a `trainer` section, and TRL's options for them."""

from typing import Any

from rewriter.config import Config
from rewriter.trainer_options import grpo_config


def _config(evaluation: dict[str, Any] | None = None, **trainer: Any) -> Config:
    return Config.model_validate(
        {
            "output": "runs/none",
            "model": {"name": "org/model"},
            "reward": {},
            "evaluation": evaluation or {"every": 4},
            "trainer": {"use_cpu": True} | trainer,
        }
    )


def _options(evaluation: dict[str, Any] | None = None, **trainer: Any) -> Any:
    return grpo_config(_config(evaluation, **trainer))
