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

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from rewriter.ablation.evaluate import EvaluateSettings
from rewriter.ablation.levels import Keys, check_apart, check_keys, label, levels_of
from rewriter.yaml_source import ConfigError, Source

EVALUATED_ON = "evaluated_on"  # the axis of backends that every run is evaluated on
SEED = "seed"
BASELINES = "baselines"  # the evaluation of what is not trained
_NAME = re.compile(r"[A-Za-z0-9_]+")
_SAYS_NOTHING = ("true", "false", "null")  # levels that need their axis beside them


class GridError(ConfigError):
    """A grid that cannot be run; the message names the file, the value and the fix."""


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
            are evaluated on. The first is the one of the report. None: every axis by those.
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
            if not isinstance(name, str):
                raise ValueError(
                    f"axis {name!r}: YAML reads such a name (on, off, yes, no, 1) as no text; put "
                    "it in quotes"
                )
        return {name: levels_of(name, axis) for name, axis in given.items()}

    @field_validator("exclude", mode="before")
    @classmethod
    def _as_texts(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [
            {k: label(v) for k, v in one.items()} if isinstance(one, dict) else one for one in given
        ]

    @model_validator(mode="after")
    def _consistent(self) -> "Grid":
        levels = self.levels()
        check_keys("set", self.set)
        for axis, points in levels.items():
            for level, keys in points.items():
                check_keys(f"axis {axis!r}, {level}", keys)
                if level in self.evaluate.names:
                    raise ValueError(
                        f"axis {axis!r}: {level} is a system of `evaluate.systems` as well, and "
                        "tables could not tell them apart; call the level otherwise"
                    )
        check_apart(levels)
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

    def tables(self) -> tuple[tuple[str, str], ...]:
        """The matrices that are asked for; else every axis by the backends that are evaluated."""
        axes = tuple(self.axes) or (SEED,)
        return self.matrices or tuple((axis, EVALUATED_ON) for axis in axes)

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
        said = str(fault["msg"]).removeprefix("Value error, ")
        location = tuple(map(str, fault["loc"]))
        known = ", ".join(Grid.model_fields)
        more = f"; there are: {known}" if fault["type"] == "extra_forbidden" else ""
        if fault["type"] == "string_type" and isinstance(fault["input"], bool | int | float):
            more = "; put it in quotes"
        if fault["loc"]:  # else what was given is the whole file
            more += f" (given: {fault['input']!r:.80})"
        key = f"`{'.'.join(location)}`: " if location else ""
        yield f"{source.where(_place(said) or location)}: {key}{said}{more}"


def _place(said: str) -> tuple[str, ...]:
    """The key that a message begins with; our own name an axis, or "exclude: …"."""
    if axis := re.match("axis '(.+?)'", said):
        return ("axes", axis[1])
    key = said.partition(":")[0]
    return (key,) if key in Grid.model_fields else ()


def _name(at: Mapping[str, str]) -> str:
    """A folder's name: levels in order, with the axis before those that say nothing alone."""
    parts = [
        level if re.match(r"[A-Za-z]", level) and level not in _SAYS_NOTHING else f"{axis}{level}"
        for axis, level in at.items()
    ]
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", "-".join(parts))[:100]
