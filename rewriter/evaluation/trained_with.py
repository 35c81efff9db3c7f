"""Whether a rewriter is evaluated with the search that it was trained against."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rewriter.config import Config
from rewriter.evaluation.facts import Difference, settings_changed
from rewriter.evaluation.plan import Entry

logger = logging.getLogger(__name__)


def warn_of_other_search(config: Config, entries: Sequence[Entry], backends: Iterable[str]) -> None:
    """Log every setting of a backend that was another one when a checkpoint was trained.

    The run's `config.yaml` says what its rewards were found with. A checkpoint away from its run is
    not compared, nor is a backend that the run did not search.

    Args:
        config: of the evaluation.
        entries: its systems.
        backends: those that are evaluated; what they are made of counts too.
    """
    searched = config.searched(backends)
    now = {name: config.retriever_settings(name).model_dump(mode="json") for name in searched}
    for entry in entries:
        if entry.kind == "checkpoint" and entry.place is not None:
            for key, then, today in _changed(_retrievers(entry.place), now):
                logger.warning(
                    "%s was trained with %s: %s, and is evaluated with %s; give the same, unless "
                    "another search is what you want to see it on",
                    entry.label,
                    key,
                    then,
                    today,
                )


def _changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in now:
        if isinstance(then.get(name), Mapping):
            yield from settings_changed(f"retrievers.{name}", then[name], now[name])


def _retrievers(place: Path) -> Mapping[str, Any]:
    """The section of the run's configuration; empty where none can be read."""
    path = place.resolve().parent / "config.yaml"
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    found = values.get("retrievers") if isinstance(values, Mapping) else None
    return found if isinstance(found, Mapping) else {}
