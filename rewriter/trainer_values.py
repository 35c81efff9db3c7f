"""Values of the `trainer` section that others than TRL read too, read as TRL would, without TRL.

YAML and command line may give a number as text ("24", 1e3) and a mapping as JSON, which TRL parses
for itself. Whoever took them raw would generate with a text for a limit.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from rewriter.config import Config
from rewriter.config.sections import DECIDED
from rewriter.trainer_limits import check_values
from rewriter.yaml_source import ConfigError

# As the evaluation does: a rollout must not be longer than what is judged and kept.
COMPLETION_TOKENS = 256
# Fields that TRL also takes as JSON.
MAPPINGS = (
    "model_init_kwargs",
    "generation_kwargs",
    "chat_template_kwargs",
    "transformers_continuous_batching_config",
)


def completion_tokens(config: Config) -> int:
    """`trainer.max_completion_length`. Raises ConfigError for what is no number from 1."""
    name = "max_completion_length"
    given = config.trainer.get(name, COMPLETION_TOKENS)
    value: Any = given if given is None else typed(config.where(f"trainer.{name}"), given, int)
    check_values(config, {name: value})
    return int(value)


def template_kwargs(config: Config) -> dict[str, Any] | None:
    """`trainer.chat_template_kwargs`, None where there are none. Raises ConfigError."""
    return mapping(config, "chat_template_kwargs")


def model_init(config: Config) -> dict[str, Any]:
    """How the base model is loaded: `model.init`, and over it `trainer.model_init_kwargs`.

    Returns:
        Arguments of `from_pretrained`, without those that other keys of `model` decide.

    Raises:
        ConfigError: one of those is among them, or there is no mapping.
    """
    given = mapping(config, "model_init_kwargs") or {}
    for name in sorted(DECIDED.keys() & given.keys()):
        raise ConfigError(
            f"{config.where(f'trainer.model_init_kwargs.{name}')} is decided by "
            f"`model.{DECIDED[name]}`; give it there, where evaluation and serving look too"
        )
    return {**config.model.init, **given, "use_safetensors": True}  # never a pickle


def mapping(config: Config, name: str) -> dict[str, Any] | None:
    """One of `MAPPINGS`, None where there is none; raises ConfigError where it is something else.

    name: of the field.
    """
    given = config.trainer.get(name)
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except ValueError:
            value = given
    if value is None or isinstance(value, Mapping):
        return None if value is None else dict(value)
    where = config.where(f"trainer.{name}")
    raise ConfigError(f"{where}: {given!r} is no mapping; write keys below it, or {{a: 1}}")


def typed(where: str, value: Any, hint: Any) -> Any:
    """A value as the type that its field has: "1e-5" and 1e3 are what YAML makes of numbers.

    Args:
        where: names the value.
        value: as it was given.
        hint: the field's type.

    Raises:
        ConfigError: it is none of that type.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError):
        return value  # a type of a package that is not there: the dataclass itself will judge
    try:
        read = adapter.validate_python(value, strict=False)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"{where}: {reason} (given: {value!r})") from error
    if isinstance(value, bool) and not isinstance(read, bool):  # pydantic takes True for 1
        raise ConfigError(f"{where}: a boolean is no number (given: {value!r})")
    # The dataclass would take a text, or 1000.0 for a number of steps, as it is.
    return read if isinstance(value, str | float) and isinstance(read, int | float) else value
