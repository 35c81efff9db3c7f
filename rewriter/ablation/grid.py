"""The grid in YAML: a base configuration, axes over its keys, and what is done with each run.

base: ../demo.yaml              # beside the grid's own file
output: runs/ablations/backends
set: {trainer.max_steps: 24}    # over the base, in every run
axes:                           # the product of all axes
  trained_on:                   # named points: name → keys
    lexical: {reward.backends: lexical}
    both: {reward.backends: [lexical, semantic], prompt.system: Rewrite.}
  rank: {lora.r: [4, 16], lora.lora_alpha: [8, 32]}   # lists of several keys go together
seeds: [1, 2]
exclude: [{trained_on: both, rank: 4}]
evaluate: {backends: [lexical, semantic], systems: [raw, untrained]}
matrices: [[trained_on, evaluated_on]]
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from retrievers import RETRIEVERS
from rewriter.yaml_source import ConfigError, Source

EVALUATED_ON = "evaluated_on"  # the axis of backends that every run is evaluated on
SEED = "seed"
BASELINES = "baselines"  # the evaluation of what is not trained
_NAME = re.compile(r"[A-Za-z0-9_]+")

Keys = dict[str, Any]  # dotted key → value


class GridError(ConfigError):
    """A grid that cannot be run; the message names the file, the value and the fix."""


class EvaluateSettings(BaseModel):
    """What each run is evaluated on, and what stands beside them.

    Attributes:
        backends: on which every run is evaluated.
        systems: evaluated once, with the base configuration: rules, "untrained", prompts; none: [].
        split: None takes the configuration's test split.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backends: tuple[str, ...] = Field(min_length=1)
    systems: tuple[str, ...] = ("raw", "untrained")
    split: str | None = None

    @field_validator("backends")
    @classmethod
    def _known(cls, backends: tuple[str, ...]) -> tuple[str, ...]:
        for name in backends:
            if name not in RETRIEVERS:
                raise ValueError(f"no backend {name!r}; there are: {', '.join(RETRIEVERS)}")
        return tuple(dict.fromkeys(backends))


class Grid(BaseModel):
    """One grid file.

    Attributes:
        base: a configuration; its path is beside the grid's own file.
        output: the state folder.
        set: over the base, in every run.
        axes: name → level → keys that it sets; see the head of this file for what is read.
        seeds: values of `trainer.seed`, an axis of the name "seed"; none: that of the base.
        exclude: combinations that are left out: axis → level.
        evaluate: see `EvaluateSettings`.
        matrices: pairs of axes, rows and columns; "evaluated_on" is the axis of the backends that
            are evaluated on. The first is the one of the report.
        reuse: patterns of folders of finished runs, which are not trained again.
        launch: words before `-m rewriter.ablation.job`, such as [accelerate, launch,
            --num_processes, 8]; none: this Python.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str
    output: str
    set: Keys = {}
    axes: dict[str, dict[str, Keys]] = {}
    seeds: tuple[int, ...] = ()
    exclude: tuple[dict[str, str], ...] = ()
    evaluate: EvaluateSettings
    matrices: tuple[tuple[str, str], ...] = ()
    reuse: tuple[str, ...] = ("runs/*", "runs/ablations/*/runs/*")
    launch: tuple[str, ...] = ()

    @field_validator("axes", mode="before")
    @classmethod
    def _levels(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        for name in given:
            if name in {SEED, EVALUATED_ON} or not _NAME.fullmatch(str(name)):
                raise ValueError(
                    f"axis {name!r}: use letters, digits and _ , and another name than {SEED} "
                    f"(give `seeds`) and {EVALUATED_ON}"
                )
        return {name: _levels_of(name, axis) for name, axis in given.items()}

    @field_validator("exclude", mode="before")
    @classmethod
    def _as_texts(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [
            {k: str(v) for k, v in one.items()} if isinstance(one, dict) else one for one in given
        ]

    @model_validator(mode="after")
    def _consistent(self) -> "Grid":
        levels = self.levels()
        for combination in self.exclude:
            for axis, level in combination.items():
                if level not in levels.get(axis, {}):
                    there = "; ".join(f"{name}: {', '.join(one)}" for name, one in levels.items())
                    raise ValueError(f"exclude: there is no {axis}: {level}; there are {there}")
        for pair in self.matrices:
            for axis in pair:
                if axis not in {*levels, EVALUATED_ON}:
                    raise ValueError(
                        f"matrices: no axis {axis!r}; there are: "
                        f"{', '.join((*levels, EVALUATED_ON))}"
                    )
            if pair[0] in {pair[1], EVALUATED_ON}:
                raise ValueError(
                    f"matrices: {list(pair)}; give two axes, {EVALUATED_ON} as the second one"
                )
        if not any(True for _ in self.points()):
            raise ValueError("no run is left; give `axes` or `seeds`, or exclude less")
        return self

    def levels(self) -> dict[str, dict[str, Keys]]:
        """Axis → level → keys, the seeds among them, in order."""
        seeds = {str(seed): {"trainer.seed": seed} for seed in self.seeds}
        return {**self.axes, **({SEED: seeds} if seeds else {})}

    def points(self) -> Iterator["Point"]:
        """The runs: the product of all axes without what is excluded."""
        levels = self.levels()
        if not levels:
            return
        for chosen in product(*levels.values()):
            at = dict(zip(levels, chosen, strict=True))
            if any(all(at[a] == level for a, level in one.items()) for one in self.exclude):
                continue
            keys: Keys = {}
            for axis, level in at.items():
                keys |= levels[axis][level]
            yield Point(_name(at), at, keys)


class Point(NamedTuple):
    """One run: its name, its level on each axis, and the keys that these set."""

    name: str
    at: dict[str, str]
    keys: Keys


def read_grid(path: str | Path) -> Grid:
    """Read a grid file.

    Raises:
        GridError: one line for each fault: place, given value, what is allowed.
        ConfigError: no such file, or no YAML.
    """
    source = Source(Path(path))
    try:
        return Grid.model_validate(source.values)
    except ValidationError as error:
        raise GridError("\n".join(_faults(error, source))) from error


def _faults(error: ValidationError, source: Source) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        location = tuple(map(str, fault["loc"]))
        said = str(fault["msg"]).removeprefix("Value error, ")
        known = ", ".join(Grid.model_fields)
        more = f"; there are: {known}" if fault["type"] == "extra_forbidden" else ""
        yield (
            f"{source.where(location)}: `{'.'.join(location)}`: {said}{more} "
            f"(given: {fault['input']!r:.80})"
        )


def _levels_of(axis: str, given: Any) -> dict[str, Keys]:
    """Level → keys, from named points or from lists of values."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"axis {axis!r}: give key: [values], or names with keys below each")
    if all(isinstance(one, Mapping) for one in given.values()):
        return {str(name): dict(keys) for name, keys in given.items()}
    lists = {key: one for key, one in given.items() if isinstance(one, list)}
    if len(lists) < len(given) or len({len(one) for one in lists.values()}) != 1:
        raise ValueError(
            f"axis {axis!r}: its keys need lists of the same length, which go together; or give "
            "names with keys below each"
        )
    rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    found = {_label(next(iter(row.values()))): row for row in rows}
    if not rows or len(found) < len(rows):
        raise ValueError(f"axis {axis!r}: no value, or one of them twice; give each once")
    return found


def _label(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "+".join(value)
    return json.dumps(value)


def _name(at: Mapping[str, str]) -> str:
    """A folder's name: levels in order, with the axis before those that say nothing alone."""
    parts = [
        level if re.match(r"[A-Za-z]", level) else f"{axis}{level}" for axis, level in at.items()
    ]
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", "-".join(parts))[:100]
