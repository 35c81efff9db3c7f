"""pydantic's faults → one line each: place, key, what is allowed, what was given."""

import difflib
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from retrievers import RETRIEVERS, settings_class
from retrievers.loaders import LOADERS, options_class
from rewards.settings import DEFAULTS
from rewriter.config.places import Places
from rewriter.yaml_source import Location

_ABSENT = object()
_BACKENDS = ("reward", "backends")
_KEY = "[key]"  # what pydantic puts after a key that is itself at fault
_EXAMPLES = {  # kind of fault → how the value is written
    "tuple_type": "; write [a, b]",
    "list_type": "; write [a, b]",
    "dict_type": "; write keys below it, or {a: 1}",
    "model_type": "; write keys below it, or {a: 1}",
}


def refusal(location: Location, reason: str, value: Any) -> ValidationError:
    """A fault at a key below the one that is being validated."""
    return _error([_details("value_error", location, reason, value)])


def below(key: str, error: ValidationError) -> ValidationError:
    """The same faults, a level deeper: pydantic does not know under which key it was called."""
    faults = error.errors(include_url=False)
    return _error(
        [_details(f["type"], (key, *map(str, f["loc"])), f["msg"], f["input"]) for f in faults]
    )


def explain(
    error: ValidationError, values: Mapping[str, Any], places: Places, root: type[BaseModel]
) -> list[str]:
    """One line for each key at fault.

    Args:
        error: what pydantic found.
        values: what it was given.
        places: where that was written.
        root: the model of the whole configuration.
    """
    lines: dict[Location, str] = {}
    for fault in error.errors(include_url=False):
        location = _location(fault, values)
        said = _say(fault, location, values, root)
        # A union has a fault for each of its types; the first says enough.
        lines.setdefault(location, f"{places.where(location)}: `{'.'.join(location)}`{said}")
    return list(lines.values())


def _error(details: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data("Config", details)


def _details(kind: str, location: Location, reason: str, value: Any) -> InitErrorDetails:
    custom = PydanticCustomError(kind, "{reason}", {"reason": reason})
    return InitErrorDetails(type=custom, loc=location, input=value)


def _location(fault: Mapping[str, Any], values: Mapping[str, Any]) -> Location:
    location = tuple(map(str, fault["loc"]))
    if _of_key(fault):
        return location[:-1] if location[-1] == _KEY else location
    return _written(location, values, fault["type"] == "missing")


def _of_key(fault: Mapping[str, Any]) -> bool:
    """Whether a key is no text."""
    return fault["type"] == "invalid_key" or _KEY in fault["loc"][-1:]


def _say(
    fault: Mapping[str, Any], location: Location, values: Mapping[str, Any], root: type[BaseModel]
) -> str:
    if _of_key(fault):
        return (
            f" is no setting: keys are names (given: {fault['input']!r:.80}); correct or remove it"
        )
    if fault["type"] == "extra_forbidden":
        return f" is not a setting{_similar(location, values, root)}"
    if fault["type"] == "missing":
        return " is missing; add it"
    message = " ".join(str(fault["msg"]).removeprefix("Value error, ").split())
    return f": {message}{_EXAMPLES.get(fault['type'], '')} (given: {fault['input']!r:.80})"


def _written(location: Location, values: Mapping[str, Any], missing: bool) -> Location:
    """The part of a fault's location that somebody wrote.

    Left out are the names of a union's types, and backends where a default for all of them is at
    fault. A missing key is kept, since it is the one to be written.
    """
    if missing:
        return location
    inner: Any = values
    for depth, part in enumerate(location):
        inner = _get(inner, part)
        if inner is _ABSENT:
            spread = location[:2] == _BACKENDS and location[-1] in DEFAULTS
            return ("reward", location[-1]) if spread else location[:depth]
    return location


def _get(values: Any, part: str) -> Any:
    if isinstance(values, Mapping):
        return values.get(part, _ABSENT)
    if isinstance(values, list) and part.isdigit() and int(part) < len(values):
        return values[int(part)]
    return _ABSENT


def _similar(location: Location, values: Mapping[str, Any], root: type[BaseModel]) -> str:
    """What may stand in the place of an unknown key."""
    model: Any = root
    for depth in range(1, len(location)):
        model = _annotation(location[:depth], model, values)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return ""
    allowed = list(model.model_fields)
    close = difflib.get_close_matches(location[-1], allowed, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; there are: {', '.join(allowed)}"


def _annotation(location: Location, model: Any, values: Mapping[str, Any]) -> Any:
    """The type at a location, `model` being the one above it."""
    if location == ("collection", "options"):
        loader = values["collection"].get("loader", "stdlib")
        return options_class(loader) if loader in LOADERS else None
    if location[0] == "retrievers" and len(location) == 2:
        return settings_class(location[1]) if location[1] in RETRIEVERS else None
    if isinstance(model, type) and issubclass(model, BaseModel):
        field = model.model_fields.get(location[-1])
        return _without_none(field.annotation) if field else None
    # dict[str, X] and tuple[X, ...]: the type of the items
    return next((one for one in get_args(model) if one not in (str, ...)), None)


def _without_none(annotation: Any) -> Any:
    """`X` of `X | None`."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(annotation) and len(kinds) == 1 else annotation
