"""What a grid consists of: its runs with their resolved configurations, and the baselines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from retrievers.index import fingerprint
from rewriter.ablation.checks import check_evaluation, check_overrides
from rewriter.ablation.grid import BASELINES, Grid, GridError
from rewriter.ablation.levels import Keys
from rewriter.config import Config, ConfigError, load
from rewriter.yaml_source import Source

# Keys of `evaluation` that an evaluation of finished rewriters depends on, and no weight.
_LOOKED_AT = ("measures", "depth", "prompts", "samples", "temperature", "seed")

# Keys that change no trained weight: where things lie, and what is looked at afterwards.
NOT_TRAINED = (
    "output",
    "index_dir",
    "threads",
    "alarms",
    "synthesis",
    "trainer.report_to",
    "trainer.run_name",
    *(f"evaluation.{key}" for key in (*_LOOKED_AT, "systems", "bootstrap_samples")),
)


@dataclass(frozen=True)
class Item:
    """One thing to do: a run and its evaluation, or the evaluation of the baselines.

    Attributes:
        name: of its folders: what it changes, and the beginning of its fingerprint.
        at: axis → level; empty for the baselines.
        config: resolved; its output is the folder of the run.
        fingerprint: of all that its weights depend on.
        evaluation: of that and what is evaluated.
    """

    name: str
    at: Mapping[str, str]
    config: Config
    fingerprint: str
    evaluation: str

    @property
    def trains(self) -> bool:
        """Whether it is a run."""
        return bool(self.at)

    @property
    def steps(self) -> int | None:
        """Optimizer steps; 0 for the baselines, None where epochs are counted instead."""
        if not self.trains:
            return 0
        steps = self.config.trainer.get("max_steps", -1)
        return int(steps) if isinstance(steps, int) and steps > 0 else None


def plan(grid: Grid, file: Path, output: Path, overrides: Sequence[str] = ()) -> list[Item]:
    """The baselines, if there are any, and the runs, in order.

    Args:
        grid: of the file.
        file: `base` is looked for beside it.
        output: the state folder.
        overrides: `--section.key value` pairs over the base, below what the axes set.

    Raises:
        GridError: a run's configuration cannot be used, or evaluated as the grid says, or two runs
            are the same.
    """
    base = file.parent / grid.base
    if not base.is_file():
        where = Source(file).where(("base",))
        raise GridError(f"{where}: `base`: {base} is no file; its path is beside the grid's own")
    check_overrides(grid, overrides)

    def resolved(name: str, keys: Keys) -> Config:
        try:
            config = load(base, [*_words(grid.set), *overrides, *_words(keys)])
        except ConfigError as error:
            raise GridError(f"{file}, {name}: {error}") from error
        check_evaluation(grid, file, name, config)
        return config

    items: list[Item] = []
    if grid.evaluate.systems:
        items.append(_item(grid, BASELINES, {}, resolved(BASELINES, {}), output))
    items += [
        _item(grid, point.name, point.at, resolved(point.name, point.keys), output)
        for point in grid.points()
    ]
    _check_distinct(item for item in items if item.trains)
    return items


def trained_by(config: Config) -> str:
    """Fingerprint of what the weights of a run depend on, the data left out."""
    return fingerprint(weights_of(config.dump()))


def weights_of(values: dict[str, Any]) -> dict[str, Any]:
    """What is left of a dumped configuration without keys that change no trained weight."""
    values = deepcopy(values)
    for key in NOT_TRAINED:
        *parents, last = key.split(".")
        inner: Any = values
        for parent in parents:
            inner = inner.get(parent, {})
        inner.pop(last, None)
    return values


def _item(grid: Grid, name: str, at: Mapping[str, str], config: Config, output: Path) -> Item:
    made = trained_by(config)
    settings = grid.evaluate.model_dump(mode="json")
    values = config.dump()
    looked_at = {key: values["evaluation"][key] for key in _LOOKED_AT}
    if at:
        del settings["systems"], looked_at["prompts"]  # those are evaluated apart
    elif given := grid.evaluate.files:
        settings["files"] = {str(file): sha256(file.read_bytes()).hexdigest() for file in given}
    wanted = {
        "trained": made,
        "evaluate": settings,
        "evaluation": looked_at,
        "retrievers": values["retrievers"],
    }
    evaluation = fingerprint(wanted)
    folder = f"{name}.{(made if at else evaluation)[:8]}"
    moved = config.model_copy(update={"output": str(output / "runs" / folder)})
    return Item(folder, dict(at), moved, made, evaluation)


def _words(keys: Keys) -> list[str]:
    """Overrides; JSON is YAML, and reads back as the same value."""
    return [f"--{key}={json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]


def _check_distinct(items: Iterable[Item]) -> None:
    seen: dict[str, str] = {}
    for item in items:
        other = seen.setdefault(item.fingerprint, item.name)
        if other != item.name:
            raise GridError(f"{other} and {item.name} are the same run; exclude one of them")
