"""Loaders by name. A new one is one module and one line in `LOADERS`."""

from importlib import import_module
from inspect import signature
from typing import Any

from retrievers.collection import Collection
from retrievers.identity import UnknownNameError

LOADERS = {"beir": "retrievers.loaders.beir:load", "stdlib": "retrievers.loaders.stdlib:load"}


def load(name: str, /, **options: Any) -> Collection:
    """Load a collection: `load("beir", folder="data/scifact")`.

    name: a key of `LOADERS`. options: the loader's own arguments.

    Raises:
        UnknownNameError: no such loader, or an argument it does not take or lacks.
        CollectionError: what the loader found wrong with the data.
    """
    if name not in LOADERS:
        raise UnknownNameError(f"no loader {name!r}; there are: {', '.join(sorted(LOADERS))}")
    module, _, function = LOADERS[name].partition(":")
    loader = getattr(import_module(module), function)
    try:
        signature(loader).bind(**options)
    except TypeError as error:
        wanted = ", ".join(map(str, signature(loader).parameters.values()))
        raise UnknownNameError(f"loader {name!r}: {error}; it takes: {wanted}") from error
    collection: Collection = loader(**options)
    return collection
