"""Open the collection that the configuration names."""

from pathlib import Path
from typing import Any, get_args

from retrievers.collection import Collection
from retrievers.loaders import load, options_class
from retrievers.loaders.hub import HUB
from retrievers.source import SourceSettings
from rewriter.config.sections import Config
from rewriter.yaml_source import ConfigError


def open_collection(config: Config) -> Collection:
    """Load the collection.

    Raises:
        ConfigError: a file or folder that the loader's options name is not there.
        retrievers.identity.CollectionError: what is wrong with the data; names file and line.
    """
    return open_source(config, config.collection, "collection")


def open_source(config: Config, source: SourceSettings, key: str) -> Collection:
    """Load any collection that the configuration names. key: where it stands, for messages.

    Raises:
        As `open_collection`.
    """
    options = options_class(source.loader).model_validate(source.options)
    given = {name: getattr(options, name) for name in options.model_fields_set}
    for name, value in given.items():
        named = _is_path(type(options).model_fields[name].annotation) and value is not None
        if named and not str(value).startswith(HUB):
            _check_exists(config.where(f"{key}.options.{name}"), value)
    return load(source.loader, **given)


def _check_exists(where: str, given: str | Path) -> None:
    if not str(given).strip() or "\0" in str(given):
        raise ConfigError(f"{where}: {str(given)!r} is no path; give an existing one")
    path = Path(given)
    if not path.exists():
        here = "" if path.is_absolute() else f" (looked in {Path.cwd()})"
        raise ConfigError(
            f"{where}: {str(given)!r} is not there{here}; give an existing path, or make it first"
        )


def _is_path(annotation: Any) -> bool:
    return annotation is Path or Path in get_args(annotation)
