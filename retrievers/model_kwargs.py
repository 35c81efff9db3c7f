"""Arguments of a model's `from_pretrained`, as a configuration file can hold them."""

import json
from collections.abc import Mapping
from typing import Any


def as_json(given: Any, place: str = "model_kwargs") -> Any:
    """The same values with types of numbers, such as `torch.float32`, by name ("float32").

    An index depends on these arguments, so what has no name in a file cannot be told apart later.

    Args:
        given: arguments by name, or a value within.
        place: of it, for the error.

    Raises:
        ValueError: a value is nothing that JSON has.
    """
    if isinstance(given, Mapping):
        return {name: as_json(one, f"{place}.{name}") for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [as_json(one, f"{place}[{number}]") for number, one in enumerate(given)]
    # By its name, so that torch, which takes seconds to import, is not needed to check settings.
    if f"{type(given).__module__}.{type(given).__name__}" == "torch.dtype":
        return str(given).removeprefix("torch.")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{place} is {given!r}, a {type(given).__name__}; write it as a text, a number, a list "
            "or a mapping, as a configuration file would"
        ) from error
    return given
