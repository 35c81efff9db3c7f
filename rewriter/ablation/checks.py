"""What would fail, or be lost, only after hours of training: found before the first run."""

import logging
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from retrievers import part_names
from rewriter.ablation.grid import Grid, GridError
from rewriter.config import Config
from rewriter.config.overrides import pairs
from rewriter.systems import FILE, SYSTEMS, UNTRAINED
from rewriter.yaml_source import Source

logger = logging.getLogger(__name__)


def check_evaluation(grid: Grid, file: Path, name: str, config: Config) -> None:
    """Whether a run's configuration can be evaluated as the grid says.

    Args:
        grid: of the file.
        file: the grid's.
        name: of the run.
        config: of the run.

    Raises:
        GridError: a backend lacks settings, or there is no such system or file of rewrites.
    """
    names = list(grid.evaluate.backends)
    for backend in names:
        try:
            settings = config.retriever_settings(backend)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            key = ".".join(("retrievers", backend, *map(str, fault["loc"])))
            raise GridError(
                f"{_where(file, 'backends')}: every run is evaluated on {backend!r}, and {name} "
                f"cannot search it: `{key}`: {fault['msg']}; give it in the base, or in `set`"
            ) from error
        names += [part for part in part_names(settings) if part not in names]
    known = (*SYSTEMS, UNTRAINED, *config.evaluation.prompts)
    for system, called in zip(grid.evaluate.systems, grid.evaluate.names, strict=True):
        if system.startswith(FILE):
            if not Path(system.removeprefix(FILE)).is_file():
                raise GridError(f"{_where(file, 'systems')}: {system!r}: there is no such file")
            if called in config.evaluation.prompts:
                raise GridError(
                    f"{_where(file, 'systems')}: {system!r} goes by the name of the prompt "
                    f"`evaluation.prompts.{called}`; rename the file"
                )
        elif system not in known:
            raise GridError(
                f"{_where(file, 'systems')}: no system {system!r}; there are: "
                f"{', '.join(known)}, {FILE}PATH"
            )


def check_split(grid: Grid, file: Path, config: Config) -> None:
    """Whether the split that is evaluated exists; reads the collection if the grid names one.

    Raises:
        GridError: there is no such split.
    """
    from rewriter.config.collection import open_collection

    split = grid.evaluate.split
    if split is None:
        return
    there = open_collection(config).splits
    if split not in there:
        raise GridError(
            f"{_where(file, 'split')}: no split {split!r} in the collection; there are: "
            f"{', '.join(there)}"
        )


def check_overrides(grid: Grid, overrides: Sequence[str]) -> None:
    """What the axes set counts more than the command line: say where that leaves a word unused.

    Raises:
        GridError: an axis sets the key in all of its levels, so that no run would use the word.
    """
    for key, value in pairs(overrides):
        for axis, points in grid.levels().items():
            over = [
                level
                for level, keys in points.items()
                if any(key == own or key.startswith(f"{own}.") for own in keys)
            ]
            if len(over) == len(points):
                raise GridError(
                    f"command line: --{key} {value!r} would be used by no run: axis {axis!r} sets "
                    "it; change the grid"
                )
            if over:
                logger.warning(
                    "--%s %r is not used where axis %r is %s, which sets it itself",
                    key,
                    value,
                    axis,
                    " or ".join(over),
                )


def _where(file: Path, key: str) -> str:
    return f"{Source(file).where(('evaluate', key))}: `evaluate.{key}`"
