"""Runs that are there already: a finished one with the same settings and data is not done again.

They also say how long a step takes.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from glob import escape, glob
from pathlib import Path
from statistics import median
from typing import Any

from rewriter.ablation.grid import GridError
from rewriter.ablation.items import Item, trained_by, weights_of
from rewriter.ablation.state import Outcome, State
from rewriter.checkpoint import MANIFEST
from rewriter.config import Config, ConfigError, load
from rewriter.run_directory import RunDirectory
from rewriter.yaml_source import Source

logger = logging.getLogger(__name__)

# What a step's time depends on, beside the machine.
_SIZES = (
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "max_completion_length",
    "use_cpu",
)


def is_finished(run: RunDirectory) -> bool:
    """Whether a training was carried to its end; `result.json` is what it writes last.

    A finished run that is resumed for more steps keeps its result until it ends again, and says in
    `config.yaml` what it is to become: what its result was made with stands in the manifest.
    """
    if not run.result.is_file():
        return False
    try:
        manifest = (run.best / MANIFEST).read_text(encoding="utf-8")
        now = Source(run.path / "config.yaml").values
    except (FileNotFoundError, ConfigError):  # it may be replaced just now
        return False
    made = json.loads(manifest).get("config")
    return isinstance(made, dict) and weights_of(made) == weights_of(now)


def runs_at(patterns: Iterable[str], root: Path | None = None) -> list[Path]:
    """Folders of runs, in order; patterns are below `root`, or the working folder."""
    below = Path(escape(str(root or Path())))
    named = (str(below / pattern) for pattern in patterns)
    found = (Path(path) for pattern in named for path in sorted(glob(pattern)))
    return [path for path in dict.fromkeys(found) if (path / "config.yaml").is_file()]


def finished_like(item: Item, folders: Sequence[Path], launch: Sequence[str] = ()) -> Path | None:
    """A finished run with the same settings and the same data; None if there is none.

    Args:
        item: what is to be trained.
        folders: of runs.
        launch: words that the training would be launched with: on another number of processes a
            batch has another size, and deals out other prompts.
    """
    for folder in folders:
        config = _config(folder)
        if config is None or not is_finished(RunDirectory(folder)):
            continue
        if trained_by(config) != item.fingerprint:
            continue
        changed = changed_since(item.config, folder)
        if _begun_with(folder).get("processes", 1) != processes(launch):
            changed.append("the number of processes")
        if not changed:
            return folder
        logger.info("%s: not reused, %s changed since", folder, ", ".join(changed))
    return None


def changed_since(config: Config, folder: Path) -> list[str]:
    """Names of the data that are not what the run in a folder began with."""
    return _changed(_begun_with(folder), data_of(config))


def data_of(config: Config) -> dict[str, Any]:
    """Fingerprints of a configuration's data, by name."""
    from rewriter.training_data import load_data

    return load_data(config).facts()


def processes(launch: Sequence[str]) -> int | None:
    """How many processes a training has; None where `launch` does not say."""
    words = iter(launch)
    for word in words:
        name, _, value = word.partition("=")
        if name.replace("-", "_") == "__num_processes":
            value = value or next(words, "")
            return int(value) if value.isdigit() else None
    return None if launch else 1


def refuse_other_data(items: Sequence[Item], state: State) -> None:
    """What is over counts only if the data are what they were.

    Raises:
        GridError: they changed since; a table of both would compare nothing.
    """
    seen: dict[str, dict[str, Any]] = {}
    for item in items:
        before = _data_before(state.outcome(item))
        if not before:
            continue
        named = list(item.config.reward.backends) if item.config.prompt.by_backend else []
        key = json.dumps([item.config.dump()["collection"], named])
        now = seen[key] = seen.get(key) or data_of(item.config)
        if changed := _changed(before, now):
            raise GridError(
                f"{state.path}: {item.name} was carried out on other data "
                f"({', '.join(changed)} changed since); give another --output, or --results for "
                "what was found then"
            )


def _data_before(outcome: Outcome | None) -> dict[str, Any]:
    """Fingerprints of the data that something was carried out on; empty where they are unknown."""
    if outcome is None:
        return {}
    return _begun_with(Path(outcome.run)) if outcome.run else outcome.data or {}


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name, value in now.items() if before.get(name) != value]


def step_seconds(config: Config, folders: Iterable[Path]) -> float | None:
    """Median time of a step, measured in runs of the same model and batch; None without such."""
    wanted = _size(config)
    times = [
        seconds
        for folder in folders
        if (found := _config(folder)) is not None and _size(found) == wanted
        for seconds in _step_times(folder)
    ]
    return median(times) if times else None


def _size(config: Config) -> tuple[Any, ...]:
    return (config.model.name, *(config.trainer.get(key) for key in _SIZES))


def _step_times(folder: Path) -> Iterator[float]:
    path = folder / "metrics.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found = json.loads(line).get("step_time")
        except ValueError:  # a line that is being written
            continue
        if found is not None:
            yield float(found)


def _config(folder: Path) -> Config | None:
    """A run's configuration; None where another version of this project wrote it."""
    path = folder / "config.yaml"
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@cache
def _read(path: Path, written: int) -> Config | None:
    """Reading takes a while, and a folder may be given to another run while a worker goes on."""
    try:
        return load(path)
    except ConfigError:
        return None


def _begun_with(folder: Path) -> dict[str, Any]:
    """Facts that a run noted when it began; empty where it has none."""
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
