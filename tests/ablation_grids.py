"""Grids on paper, for the tests of `rlqr ablate`: nothing of them is trained."""

import json
from pathlib import Path
from typing import Any

import yaml

from rewriter.ablation.grid import Grid
from rewriter.config import Config

GRIDS = sorted((Path(__file__).parent.parent / "configs" / "ablations").glob("*.yaml"))
BASE = "model: {name: x}\nreward: {backends: lexical}\ntrainer: {max_steps: 10}\n"
EVALUATE = {"backends": ["lexical"]}


def grid_of(**values: Any) -> Grid:
    """A grid of what is given, evaluated on one backend."""
    return Grid.model_validate({"base": "b.yaml", "output": "out", "evaluate": EVALUATE, **values})


def written(folder: Path, **values: Any) -> Path:
    """The file of such a grid, beside its base."""
    (folder / "b.yaml").write_text(BASE)
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({"base": "b.yaml", "output": str(folder / "out")} | values))
    return path


def config_of(**values: Any) -> Config:
    """A configuration of what is given."""
    base = {"model": {"name": "x"}, "reward": {"backends": "lexical"}}
    return Config.model_validate(base | values)


def measured(folder: Path, *times: float, **trainer: Any) -> None:
    """The folder of a run whose steps took so long; it is writing a line."""
    folder.mkdir(parents=True)
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}, "trainer": trainer}
    (folder / "config.yaml").write_text(Config.model_validate(values).to_yaml())
    rows = [{"step": n, "step_time": time} for n, time in enumerate(times)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(text + '{"step": 9, "step_ti')
