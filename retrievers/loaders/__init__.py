"""Loaders by name. A new one is one module and one line in `LOADERS`."""

from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from retrievers.collection import Collection
from retrievers.identity import UnknownNameError

LOADERS = {
    "beir": "retrievers.loaders.beir:load",
    "files": "retrievers.loaders.files:load",
    "kopub": "retrievers.loaders.kopub:load",
    "msmarco": "retrievers.loaders.msmarco:load",
    "stdlib": "retrievers.loaders.stdlib:load",
    "synthetic": "retrievers.loaders.synthetic:load",
    "trec": "retrievers.loaders.trec:load",
    "vidore": "retrievers.loaders.vidore:load",
}


def load(name: str, /, **options: Any) -> Collection:
    """Load a collection: `load("beir", folder="data/scifact")`.

    name: a key of `LOADERS`. options: the loader's own arguments.

    Raises:
        UnknownNameError: no such loader, or an argument it does not take or lacks.
        CollectionError: what the loader found wrong with the data.
    """
    loader = _function(name)
    if settings := _settings(loader):
        return loader(_checked(name, settings, options))
    taken = signature(loader).parameters
    try:
        signature(loader).bind(**{key: value for key, value in options.items() if key in taken})
    except TypeError as error:
        wanted = ", ".join(map(str, taken.values()))
        raise UnknownNameError(f"loader {name!r}: {error}; it takes: {wanted}") from error
    if unknown := [key for key in options if key not in taken]:
        raise UnknownNameError(
            f"loader {name!r} takes no {', '.join(unknown)}; leave it out (it takes: "
            f"{', '.join(taken)})"
        )
    return loader(**options)


def options_class(name: str) -> type[BaseModel]:
    """The loader's arguments as a pydantic class, to check them without opening anything.

    Raises:
        UnknownNameError: no such loader.
    """
    loader = _function(name)
    if settings := _settings(loader):
        return settings
    hints = get_type_hints(loader)
    fields: dict[str, Any] = {
        argument.name: (
            hints.get(argument.name, Any),
            ... if argument.default is Parameter.empty else argument.default,
        )
        for argument in signature(loader).parameters.values()
    }
    strict = ConfigDict(extra="forbid", protected_namespaces=(), arbitrary_types_allowed=True)
    return create_model(f"{name} options", __config__=strict, **fields)


def _settings(loader: Callable[..., Collection]) -> type[BaseModel] | None:
    """The class at the top of the loader's module, if its one argument is such."""
    first = next(iter(signature(loader).parameters), "")
    kind = get_type_hints(loader).get(first)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _checked(name: str, settings: type[BaseModel], options: dict[str, Any]) -> BaseModel:
    try:
        return settings.model_validate(options)
    except ValidationError as error:
        faults = [(".".join(map(str, f["loc"])), f["msg"]) for f in error.errors(include_url=False)]
        said = "; ".join(f"{place}: {message}" if place else message for place, message in faults)
        raise UnknownNameError(
            f"loader {name!r}: {said}; it takes: {', '.join(settings.model_fields)}"
        ) from error


def _function(name: str) -> Callable[..., Collection]:
    if name not in LOADERS:
        raise UnknownNameError(f"no loader {name!r}; there are: {', '.join(sorted(LOADERS))}")
    module, _, function = LOADERS[name].partition(":")
    found: Callable[..., Collection] = getattr(import_module(module), function)
    return found
