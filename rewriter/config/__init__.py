"""The typed configuration of a run: a YAML file plus dotted overrides.

`load("configs/demo.yaml", ["--trainer.learning_rate", "1e-5"])` gives a `Config`. Unknown keys and
wrong types are one-line `ConfigError`s that name `file:line`. No model package is imported for it;
the `trainer` and `lora` sections belong to TRL and peft and are checked by
`rewriter.trainer_options`, which has to import them; files are looked for when they are needed.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from rewriter.config.evaluation import EvaluationSettings
from rewriter.config.faults import explain
from rewriter.config.overrides import apply, pairs
from rewriter.config.places import Places
from rewriter.config.sections import (
    AlarmSettings,
    CollectionSettings,
    Config,
    ModelSettings,
)
from rewriter.yaml_source import ConfigError, Source

__all__ = [
    "AlarmSettings",
    "CollectionSettings",
    "Config",
    "ConfigError",
    "EvaluationSettings",
    "ModelSettings",
    "load",
]


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and validate a configuration.

    Args:
        path: the YAML file.
        overrides: `--section.key value` pairs (or `--section.key=value`), values read as YAML; of
            two for the same key the later one counts.

    Raises:
        ConfigError: one line for each fault: place, given value, what is allowed.
    """
    source = Source(Path(path))
    given = list(pairs(overrides))
    for key, value in given:
        apply(source.values, key, value)
    places = Places(source, tuple(tuple(key.split(".")) for key, _ in given))
    try:
        config = Config.model_validate(source.values)
    except ValidationError as error:
        raise ConfigError("\n".join(explain(error, source.values, places, Config))) from error
    config.remember(places)
    return config
