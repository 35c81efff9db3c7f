"""Runs that are there already: a finished one with the same settings and data is not done again.

They also say how long a step takes.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from statistics import median
from typing import Any

from rewriter.ablation.items import Item, trained_by
from rewriter.checkpoint import MANIFEST
from rewriter.config import Config, ConfigError, load
from rewriter.run_directory import RunDirectory

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
    """Whether a training was carried to its end; `result.json` is what it writes last."""
    return run.result.is_file() and (run.best / MANIFEST).is_file()


def runs_at(patterns: Iterable[str], root: Path | None = None) -> list[Path]:
    """Folders of runs, in order; patterns are below `root`, or the working folder."""
    named = (str((root or Path()) / pattern) for pattern in patterns)
    found = (Path(path) for pattern in named for path in sorted(glob(pattern)))
    return [path for path in dict.fromkeys(found) if (path / "config.yaml").is_file()]


def finished_like(item: Item, folders: Sequence[Path]) -> Path | None:
    """A finished run with the same settings and the same data; None if there is none."""
    for folder in folders:
        config = _config(folder)
        if config is None or not is_finished(RunDirectory(folder)):
            continue
        if trained_by(config) == item.fingerprint and _same_data(item.config, folder):
            return folder
    return None


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


@cache
def _config(folder: Path) -> Config | None:
    """A run's configuration; None where another version of this project wrote it."""
    try:
        return load(folder / "config.yaml")
    except ConfigError:
        return None


def _same_data(config: Config, folder: Path) -> bool:
    from rewriter.training_data import load_data

    try:
        before = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    now = load_data(config).facts()
    changed = [name for name, value in now.items() if before.get(name) != value]
    if changed:
        logger.info("%s: not reused, %s changed since", folder, ", ".join(changed))
    return not changed
