"""Command line overrides: `--trainer.learning_rate 1e-5 --reward.backends semantic`."""

from collections.abc import Iterator, Sequence
from typing import Any

from rewriter.yaml_source import ConfigError, scalar


def pairs(words: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of `--key value` and `--key=value`.

    Raises:
        ConfigError: a word that is no key, a key without a value.
    """
    rest = iter(words)
    for word in rest:
        key, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not all(key.split(".")):
            raise ConfigError(
                f"command line: {word!r}: expected an override such as --trainer.max_steps 100"
            )
        if not equals:
            following = next(rest, None)
            if following is None or following.startswith("--"):
                raise ConfigError(f"command line: --{key} has no value; write --{key} VALUE")
            text = following
        yield key, scalar(text)


def apply(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key, sections that are missing or empty added.

    Raises:
        ConfigError: one of the key's parents is no section.
    """
    *parents, last = key.split(".")
    for depth, parent in enumerate(parents):
        inner = values.get(parent)
        if not isinstance(inner, dict):
            inner = values[parent] = _opened(inner, parents[: depth + 1], key)
        values = inner
    values[last] = value


def _opened(value: Any, taken: Sequence[str], key: str) -> dict[str, Any]:
    """A section in place of nothing, or of a short form of `reward.backends`."""
    if value is None:
        return {}
    if list(taken) == ["reward", "backends"]:
        names = [value] if isinstance(value, str) else value
        if isinstance(names, list):
            return {str(name): {} for name in names}
    if list(taken[:-1]) == ["reward", "backends"] and isinstance(value, int | float):
        return {"weight": value}
    raise ConfigError(
        f"command line: --{key}: `{'.'.join(taken)}` is {value!r}, which holds no keys; "
        f"give --{'.'.join(taken)} as a whole"
    )
