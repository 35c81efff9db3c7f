"""Grids over the tiny policy, and a stand-in for the processes of their jobs."""

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from rewriter.ablation import job
from rewriter.ablation.grid import read_grid
from rewriter.ablation.items import Item, plan
from rewriter.ablation.state import Outcome, State
from tests import tiny

CUSTOM = {"custom": {"path": "tests.own_engines:Engine"}}


class Jobs:
    """Does jobs in this process; `done` are the words of each."""

    def __init__(self) -> None:
        self.done: list[list[str]] = []

    def __call__(self, command: Sequence[str], log: Path, must_stop: Callable[[], bool]) -> int:
        words = list(command[command.index("rewriter.ablation.job") + 1 :])
        self.done.append(words)
        log.parent.mkdir(parents=True, exist_ok=True)
        loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
        handlers = [logger.handlers for logger in loggers]
        try:
            with log.open("a") as said, contextlib.redirect_stderr(said):
                job.main(words)
        except SystemExit as end:
            return int(end.code or 0)
        finally:  # the job's own write into its log
            for logger, before in zip(loggers, handlers, strict=True):
                logger.handlers = before
        return 0

    @property
    def trained(self) -> list[str]:
        return [words[1].rpartition("/")[2] for words in self.done if words[0] == "train"]


def written(folder: Path, **values: Any) -> Path:
    """A grid over the tiny configuration; two runs and the baselines."""
    base = tiny.settings(folder, trainer={"max_steps": 2}, evaluation={"systems": ["raw"]})
    (folder / "base.yaml").write_text(yaml.safe_dump(base | {"retrievers": CUSTOM}))
    grid = {
        "base": "base.yaml",
        "output": str(folder / "out"),
        "axes": {
            "on": {
                "lexical": {"reward.backends": "lexical"},
                "custom": {"reward.backends": "custom"},
            }
        },
        "evaluate": {"backends": ["lexical", "custom"], "systems": ["raw", "untrained"]},
        "matrices": [["on", "evaluated_on"]],
        "reuse": [],
    }
    path = folder / f"grid{len(list(folder.glob('grid*')))}.yaml"
    path.write_text(yaml.safe_dump(grid | values, sort_keys=False))
    return path


def outcomes(path: Path) -> dict[str, tuple[Item, Outcome | None, State]]:
    """A run's name without its fingerprint → it, how it ended, and the state of its grid."""
    grid = read_grid(path)
    state = State(grid.output)
    items = plan(grid, path, Path(grid.output))
    return {item.name.rpartition(".")[0]: (item, state.outcome(item), state) for item in items}


def ends_with(code: int, said: str) -> Callable[..., int]:
    """Stands in for a job that does nothing but end."""

    def run(command: Sequence[str], log: Path, must_stop: Callable[[], bool]) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(said)
        return code

    return run


@contextlib.contextmanager
def signals_as_before() -> Iterator[None]:
    """`rlqr ablate` ends in peace on SIGTERM; the tests after it end as they did."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
