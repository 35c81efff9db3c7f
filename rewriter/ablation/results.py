"""What a grid has shown so far: matrices, transfer losses, factors; files that can be read alone.

matrix.json                 the first matrix, for the report
matrices/NAME.json .csv     all of them
results.md                  all of them as tables, transfer losses, what is missing
factors.json                each axis alone, and held-out curves
report/                     a result folder: `rlqr report` makes a page of it
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewards.comparison import SAMPLES
from rewriter.ablation.cells import Evaluated, headline, mean_of
from rewriter.ablation.grid import EVALUATED_ON, SEED, Grid
from rewriter.ablation.items import Item
from rewriter.ablation.matrix import MARK, Matrix, Transfer, bracketed, matrices, transfers
from rewriter.ablation.state import State
from rewriter.records import Record, read_records, write_lines, write_records
from rewriter.rewrite_file import safe_name

RAW = "raw"
SHOWN = 10  # hits of a record that the page shows


def write_results(
    grid: Grid, items: Sequence[Item], state: State, *, samples: int = SAMPLES
) -> str:
    """Write all files from what is over.

    Args:
        grid, items, state: of the ablation.
        samples: bootstrap resamples.

    Returns:
        The text of `results.md`.
    """
    records = {item.name: _records(state, item) for item in items}
    found = [one for item in items for one in _evaluated(item, records[item.name])]
    made = matrices(grid, found, samples=samples)
    folder = state.path / "matrices"
    for matrix in made:
        _write_json(matrix.as_json(), folder / f"{matrix.title}.json")
        write_lines([matrix.as_csv().rstrip("\n")], folder / f"{matrix.title}.csv")
    axes = [rows for rows, columns in grid.matrices if columns == EVALUATED_ON]
    lost = {axis: transfers(grid, found, axis, samples=samples) for axis in axes}
    text = "\n".join(_markdown(grid, items, state, made, lost))
    write_lines([text], state.path / "results.md")
    factors = {
        "factors": list(_factors(grid, found, samples)),
        "curves": _curves(grid, items, state),
    }
    _write_json(factors, state.path / "factors.json")
    if made:
        _write_json(made[0].as_json(), state.path / "matrix.json")
    _write_report(state, items, records, made, factors)
    return text


def _records(state: State, item: Item) -> list[Record]:
    outcome = state.outcome(item)
    path = state.evaluation(item) / "records.jsonl"
    done = outcome is not None and outcome.status == "done" and path.is_file()
    return read_records(path) if done else []


def _evaluated(item: Item, records: Sequence[Record]) -> Iterator[Evaluated]:
    for system in dict.fromkeys(record.system for record in records):
        if not item.trains:
            yield Evaluated(system, {}, headline(records, system))
        elif system != RAW:
            yield Evaluated(item.name, item.at, headline(records, system))


def _markdown(
    grid: Grid,
    items: Sequence[Item],
    state: State,
    made: Sequence[Matrix],
    lost: Mapping[str, Sequence[Transfer]],
) -> Iterator[str]:
    for matrix in made:
        yield from (f"## {matrix.row_axis} × {matrix.column_axis}", "")
        if matrix.backend:
            yield from (f"Evaluated on {matrix.backend}.", "")
        yield from (matrix.as_markdown(), "")
    yield (
        "Mean NDCG@3 and its 95% interval, a bootstrap over runs and queries (over queries alone "
        f"for a single run). {MARK}: evaluated on what it was trained for."
    )
    yield from (line for axis, found in lost.items() if found for line in _transfers(axis, found))
    yield from _open(items, state)


def _transfers(axis: str, found: Sequence[Transfer]) -> Iterator[str]:
    yield from ("", f"## Transfer loss, {axis}", "")
    yield (
        "NDCG@3 on a backend less that of the rewriter trained for it, paired by run and query; "
        "below 0 is a loss."
    )
    yield from ("", "| trained on | evaluated on | difference | runs | queries |")
    yield "| --- | --- | --: | --: | --: |"
    for one in found:
        mean = one.found
        yield (
            f"| {one.trained_on} | {one.evaluated_on or 'all, pooled'} | {mean.mean:+z.3f} "
            f"{bracketed(mean, '+')} | {mean.runs} | {mean.queries} |"
        )


def _open(items: Sequence[Item], state: State) -> Iterator[str]:
    outcomes = [(item, state.outcome(item)) for item in items]
    failed = [(item, found) for item, found in outcomes if found and found.status == "failed"]
    missing = [item.name for item, found in outcomes if found is None]
    if failed:
        yield from ("", "Failed:", "")
        for item, outcome in failed:
            yield f"- {item.name} ({outcome.stage}): {outcome.error}; see {state.log(item)}"
    if missing:
        yield from ("", f"Not over yet: {', '.join(missing)}.")


def _factors(grid: Grid, found: Sequence[Evaluated], samples: int) -> Iterator[dict[str, Any]]:
    """Each axis alone, on each backend, all else pooled."""
    for axis, levels in grid.levels().items():
        if axis == SEED or len(levels) < 2:
            continue
        for backend in grid.evaluate.backends:
            means = {
                level: mean_of(
                    [
                        o.values[backend]
                        for o in found
                        if o.at.get(axis) == level and backend in o.values
                    ],
                    samples=samples,
                )
                for level in levels
            }
            known = [{"name": n, **m._asdict()} for n, m in means.items() if m is not None]
            if known:
                yield {"axis": axis, "backend": backend, "levels": known}


def _curves(grid: Grid, items: Sequence[Item], state: State) -> list[dict[str, Any]]:
    """Held-out NDCG@3 of each run by step, as its training chose the best adapter by it."""
    curves = []
    for axis, levels in grid.levels().items():
        if axis == SEED or len(levels) < 2:
            continue
        runs = [
            {"level": item.at[axis], "name": item.name, **curve}
            for item in items
            if item.trains and (curve := _curve(state, item)) is not None
        ]
        if runs:
            curves.append({"axis": axis, "runs": runs})
    return curves


def _curve(state: State, item: Item) -> dict[str, list[float]] | None:
    outcome = state.outcome(item)
    if outcome is None or outcome.run is None:
        return None
    path = Path(outcome.run) / "evaluations.jsonl"
    if not path.is_file():
        return None
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {"steps": [row["step"] for row in rows], "values": [row["score"] for row in rows]}


def _write_report(
    state: State,
    items: Sequence[Item],
    records: Mapping[str, Sequence[Record]],
    made: Sequence[Matrix],
    factors: Mapping[str, Any],
) -> None:
    """A folder that `rlqr report` reads: baselines and runs are its systems."""
    folder = state.path / "report"
    taken: set[str] = set()
    rows: list[Record] = []
    for item in items:
        name = safe_name(item.name.rpartition(".")[0], taken)
        taken.add(name)
        for record in records[item.name]:
            if not item.trains or record.system != RAW:
                system = name if item.trains else record.system
                short = replace(
                    record, system=system, hits=record.hits[:SHOWN], grades=record.grades[:SHOWN]
                )
                rows.append(short)
    if not rows:
        return
    write_records(rows, folder / "records.jsonl")
    _write_json(factors, folder / "factors.json")
    if made:
        _write_json(made[0].as_json(), folder / "matrix.json")
    _copy_shared(state, items, folder)


def _copy_shared(state: State, items: Sequence[Item], folder: Path) -> None:
    """Judgements and documents: all evaluations have the same queries, so the first will do."""
    for item in items:
        source = state.evaluation(item)
        for name in ("qrels.trec", "documents.jsonl"):
            if (source / name).is_file() and not (folder / name).is_file():
                text = (source / name).read_text(encoding="utf-8")
                write_lines([text.rstrip("\n")], folder / name)


def _write_json(value: Any, path: Path) -> None:
    write_lines([json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)], path)
