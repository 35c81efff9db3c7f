"""Held-out NDCG@3 of each run on its way, by step and by the completions that it took to get there.

A step of one run may cost what several of another one do, and a warm start samples before the first
step: runs are compared at equal completions.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from rewriter.ablation.grid import SEED, Grid
from rewriter.ablation.items import Item
from rewriter.ablation.state import State
from rewriter.config import Config
from rewriter.jsonl import read
from rewriter.warm_start import COST, FOLDER

Curves = list[dict[str, Any]]  # {"axis": …, "runs": [{"level", "name", "steps", …}]}


def curves(grid: Grid, items: Sequence[Item], state: State) -> Curves:
    """The curves of all runs that are over, once for each axis with several levels.

    A grid of seeds alone, or of axes with one level, has them once.
    """
    levels = grid.levels()
    several = [axis for axis, points in levels.items() if axis != SEED and len(points) > 1]
    found = []
    for axis in several or list(levels)[:1]:
        runs = [
            {"level": item.at[axis], "name": item.name, **curve}
            for item in items
            if item.trains and (curve := _curve(state, item)) is not None
        ]
        if runs:
            found.append({"axis": axis, "runs": runs})
    return found


def as_csv(found: Curves) -> str:
    """One line an evaluation; runs once, by the first axis."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "level", "step", "completions", "ndcg@3"])
    for run in found[0]["runs"] if found else ():
        for row in _rows(run):
            writer.writerow([run["name"], run["level"], *row])
    return text.getvalue()


def as_markdown(found: Curves) -> Iterator[str]:
    """The lines of a table: a run each, with what it reached after how many completions."""
    if not found:
        return
    yield from ("", "## Held-out curves", "")
    yield (
        "NDCG@3 on the validation split after so many completions, those of a warm start among "
        "them."
    )
    yield from ("", "| run | completions: NDCG@3 |", "| --- | --- |")
    for run in found[0]["runs"]:
        points = (f"{made}: {value:.3f}" for _, made, value in _rows(run))
        yield f"| {run['name']} | {', '.join(points)} |"


def completions_at(config: Config, processes: int, step: int, warm: int | None = None) -> int:
    """Completions that a run has sampled after so many steps, those of its warm start among them.

    Each serves `num_iterations` passes, so that a step samples a part of the batch that it reads.

    warm: of the warm start; None: as many as it is asked for, which takes enough training prompts.
    """
    given = config.trainer
    batch = int(given.get("per_device_train_batch_size", 8)) * processes
    batch *= int(given.get("gradient_accumulation_steps", 1))
    if warm is None:
        warm = config.warm_start.prompts * config.warm_start.samples
    return warm + step * batch // int(given.get("num_iterations", 1))


def _rows(run: Mapping[str, Any]) -> Iterator[tuple[int, int, float]]:
    return zip(run["steps"], run["completions"], run["values"], strict=True)


def _curve(state: State, item: Item) -> dict[str, list[Any]] | None:
    outcome = state.outcome(item)
    if outcome is None or outcome.run is None:
        return None
    path = Path(outcome.run) / "evaluations.jsonl"
    rows = read(path) if path.is_file() else []
    if not rows:
        return None
    run = Path(outcome.run)
    processes = int(_facts(run / "run.json").get("processes", 1))
    warm = _facts(run / FOLDER / COST).get("completions")
    steps = [row["step"] for row in rows]
    return {
        "steps": steps,
        "completions": [completions_at(item.config, processes, step, warm) for step in steps],
        "values": [row["score"] for row in rows],
    }


def _facts(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found
