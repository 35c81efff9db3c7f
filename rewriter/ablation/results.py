"""What a grid has shown so far: matrices, transfer losses, factors; files that can be read alone.

matrix.json                 the first matrix, for the report
matrices/NAME.json .csv     all of them
results.md                  all of them as tables, transfer losses, what is missing
factors.json                each axis alone, and held-out curves
*.csv                       transfer losses, factors and curves
report/                     a result folder: `rlqr report` makes a page of it, see report_folder.py
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from rewards.comparison import SAMPLES
from rewriter.ablation import curves
from rewriter.ablation.cells import Evaluated, headline, mean_of
from rewriter.ablation.grid import EVALUATED_ON, SEED, Grid
from rewriter.ablation.items import Item
from rewriter.ablation.matrix import (
    MARK,
    Matrix,
    Transfer,
    bracketed,
    escaped,
    matrices,
    transfers,
    wanted_runs,
)
from rewriter.ablation.report_folder import RAW, write_json, write_report_folder
from rewriter.ablation.state import State
from rewriter.records import Record, read_records, write_lines

POOLED = "all, pooled"


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
        write_json(matrix.as_json(), folder / f"{matrix.title}.json")
        write_lines([matrix.as_csv().rstrip("\n")], folder / f"{matrix.title}.csv")
    axes = [rows for rows, columns in grid.tables() if columns == EVALUATED_ON]
    lost = {axis: transfers(grid, found, axis, samples=samples) for axis in axes}
    factors = {
        "factors": list(_factors(grid, found, samples)),
        "curves": curves.curves(grid, items, state),
    }
    text = "\n".join(_markdown(items, state, made, lost, factors["curves"]))
    write_lines([text], state.path / "results.md")
    for name, table in (
        ("transfers", _transfers_csv(lost)),
        ("factors", _factors_csv(factors["factors"])),
        ("curves", curves.as_csv(factors["curves"])),
    ):
        write_lines([table.rstrip("\n")], state.path / f"{name}.csv")
    write_json(factors, state.path / "factors.json")
    write_json(made[0].as_json(), state.path / "matrix.json")
    write_report_folder(grid, items, state, records, made[0], factors)
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
    items: Sequence[Item],
    state: State,
    made: Sequence[Matrix],
    lost: Mapping[str, Sequence[Transfer]],
    drawn: curves.Curves,
) -> Iterator[str]:
    for matrix in made:
        yield from (f"## {matrix.row_axis} × {matrix.column_axis}", "")
        if matrix.backend:
            yield from (f"Evaluated on {matrix.backend}.", "")
        yield from (matrix.as_markdown(), "")
    yield (
        "Mean NDCG@3 and its 95% interval, a bootstrap over runs and queries (over queries alone "
        f"for a single run; of two or three runs it is too narrow). {MARK}: evaluated on what it "
        "was trained for."
    )
    yield from (line for axis, found in lost.items() if found for line in _transfers(axis, found))
    yield from curves.as_markdown(drawn)
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
            f"| {escaped(one.trained_on)} | {one.evaluated_on or POOLED} | {mean.mean:+z.3f} "
            f"{bracketed(mean, '+')} | {mean.runs} | {mean.queries} |"
        )


def _transfers_csv(lost: Mapping[str, Sequence[Transfer]]) -> str:
    head = ["axis", "trained_on", "evaluated_on", "difference", "low", "high", "runs", "queries"]
    rows = [
        [axis, one.trained_on, one.evaluated_on or POOLED, *one.found]
        for axis, found in lost.items()
        for one in found
    ]
    return _csv(head, rows)


def _factors_csv(factors: Sequence[Mapping[str, Any]]) -> str:
    numbers = ["mean", "low", "high", "runs", "queries", "wanted"]
    rows = [
        [one["axis"], one["backend"], level["name"], *(level.get(key, "") for key in numbers)]
        for one in factors
        for level in [*one["levels"], *one["missing"]]
    ]
    return _csv(["axis", "backend", "level", *numbers], rows)


def _csv(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


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
    """Each axis alone, on each backend, all else pooled; "missing": levels without a run yet."""
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
            rows = [
                {"name": level, **(mean._asdict() if mean else {"runs": 0}), "wanted": wanted}
                for level, mean in means.items()
                if (wanted := wanted_runs(grid, {axis: level}))
            ]
            known = [row for row in rows if row["runs"]]
            missing = [row for row in rows if not row["runs"]]
            if known:
                yield {"axis": axis, "backend": backend, "levels": known, "missing": missing}
