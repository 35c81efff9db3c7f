"""Any two axes as a table: rows × columns, its diagonal marked, what is missing left open."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from rewards.comparison import SAMPLES
from rewriter.ablation.cells import Evaluated, Mean, Values, difference, less, mean_of, pooled
from rewriter.ablation.grid import EVALUATED_ON, Grid
from rewriter.ablation.levels import trained_for

MARK = "◆"  # evaluated on what it was trained for


@dataclass(frozen=True)
class Cell:
    """mean: None where no run of it is over. runs: that are over, of how many wanted."""

    mean: Mean | None
    runs: int
    wanted: int


@dataclass(frozen=True)
class Matrix:
    """A table of means.

    Attributes:
        title: its file's name.
        row_axis, column_axis: what the names are levels of.
        rows, columns: names; first the rows of what was not trained.
        cells: row by row.
        backend: that all was evaluated on; None where the columns are the backends.
        own: row → the backend that it was trained for.
    """

    title: str
    row_axis: str
    column_axis: str
    rows: list[str]
    columns: list[str]
    cells: list[list[Cell]]
    backend: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)

    def is_diagonal(self, row: str, column: str) -> bool:
        """Whether a rewriter is evaluated on what it was trained for."""
        return self.column_axis == EVALUATED_ON and self.own.get(row) == column

    def as_json(self) -> dict[str, Any]:
        """For the report: "rows", "columns", "values" ([mean, low, high] or null); and more."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "values": [
                [None if c.mean is None else [c.mean.mean, c.mean.low, c.mean.high] for c in row]
                for row in self.cells
            ],
            "row_axis": self.row_axis,
            "column_axis": self.column_axis,
            "backend": self.backend,
            "diagonal": [[r, c] for r in self.rows for c in self.columns if self.is_diagonal(r, c)],
            "runs": [[[cell.runs, cell.wanted] for cell in row] for row in self.cells],
            "queries": self.queries,
        }

    def as_csv(self) -> str:
        """One line a cell."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        numbers = ("ndcg@3", "low", "high", "queries", "runs", "wanted", "diagonal")
        writer.writerow([self.row_axis, self.column_axis, *numbers])
        for row, column, cell in self._all():
            found = ["", "", "", ""] if cell.mean is None else [*cell.mean[:3], cell.mean.queries]
            marked = int(self.is_diagonal(row, column))
            writer.writerow([row, column, *found, cell.runs, cell.wanted, marked])
        return text.getvalue()

    def as_markdown(self) -> str:
        """A table whose cells are means with their intervals."""
        head = f"{self.row_axis} ↓, {self.column_axis} →"
        lines = [[head, *self.columns], ["---", *["--:"] * len(self.columns)]]
        for name, row in zip(self.rows, self.cells, strict=True):
            shown = (self._shown(name, *pair) for pair in zip(self.columns, row, strict=True))
            lines.append([name, *shown])
        return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)

    @property
    def queries(self) -> int:
        """Of the cell that has the most; another one lacks those whose search failed."""
        return max((c.mean.queries for row in self.cells for c in row if c.mean), default=0)

    def _shown(self, row: str, column: str, cell: Cell) -> str:
        if cell.mean is None:
            return "missing" if cell.wanted else "–"
        part = _part(cell.runs, cell.wanted, "runs")
        part += _part(cell.mean.queries, self.queries, "queries")
        mark = f"{MARK} " if self.is_diagonal(row, column) else ""
        return f"{mark}{cell.mean.mean:.3f} {bracketed(cell.mean)}{part}"

    def _all(self) -> Iterator[tuple[str, str, Cell]]:
        for row, cells in zip(self.rows, self.cells, strict=True):
            for column, cell in zip(self.columns, cells, strict=True):
                yield row, column, cell


def _part(found: int, wanted: int, what: str) -> str:
    return f" ({found} of {wanted} {what})" if found < wanted else ""


def matrices(grid: Grid, found: Sequence[Evaluated], *, samples: int = SAMPLES) -> list[Matrix]:
    """The tables that the grid asks for; two axes of its own give one for each backend."""
    made = []
    for rows, columns in grid.tables():
        if columns == EVALUATED_ON:
            made.append(_by_backend(grid, found, rows, samples))
        else:
            made += [
                _by_axes(grid, found, rows, columns, backend, samples)
                for backend in grid.evaluate.backends
            ]
    return made


def _by_backend(grid: Grid, found: Sequence[Evaluated], axis: str, samples: int) -> Matrix:
    backends = list(grid.evaluate.backends)
    levels = list(grid.levels()[axis])
    cells = [
        [
            _cell([one.values.get(backend) for one in found if one.name == name], 1, samples)
            for backend in backends
        ]
        for name in grid.evaluate.names
    ]
    for level in levels:
        runs = [one for one in found if one.at.get(axis) == level]
        wanted = wanted_runs(grid, {axis: level})
        cells.append([_cell([r.values.get(b) for r in runs], wanted, samples) for b in backends])
    rows = [*grid.evaluate.names, *levels]
    own = trained_for(grid.levels()[axis])
    return Matrix(f"{axis}.{EVALUATED_ON}", axis, EVALUATED_ON, rows, backends, cells, own=own)


def _by_axes(
    grid: Grid, found: Sequence[Evaluated], rows: str, columns: str, backend: str, samples: int
) -> Matrix:
    levels = grid.levels()
    cells = []
    for row in levels[rows]:
        line = []
        for column in levels[columns]:
            at = {rows: row, columns: column}
            runs = [one for one in found if one.at and at.items() <= one.at.items()]
            line.append(
                _cell([r.values.get(backend) for r in runs], wanted_runs(grid, at), samples)
            )
        cells.append(line)
    title = f"{rows}.{columns}.{backend}"
    return Matrix(title, rows, columns, list(levels[rows]), list(levels[columns]), cells, backend)


def _cell(columns: Sequence[Values | None], wanted: int, samples: int) -> Cell:
    known = [column for column in columns if column]
    return Cell(mean_of(known, samples=samples), len(known), wanted)


def wanted_runs(grid: Grid, at: Mapping[str, str]) -> int:
    """How many runs of the grid have these levels."""
    return sum(at.items() <= point.at.items() for point in grid.points())


@dataclass(frozen=True)
class Transfer:
    """What is lost where a rewriter is used on a backend that another one was trained for.

    Attributes:
        trained_on: its level.
        evaluated_on: the backend; None: the mean over all that have a rewriter of their own, which
            is there once all of those are.
        found: its NDCG@3 less that of the rewriter trained for the backend, paired.
    """

    trained_on: str
    evaluated_on: str | None
    found: Mean


def transfers(
    grid: Grid, found: Sequence[Evaluated], axis: str, *, samples: int = SAMPLES
) -> list[Transfer]:
    """Every level of the axis against the one trained for a backend alone; the pooled one last."""
    points = grid.levels()[axis]
    trained = trained_for(points)
    own = _own(trained, grid.evaluate.backends)
    made = []
    for level in points:
        apart = []
        foreign = [name for name in own if name != trained.get(level)]
        for backend in foreign:
            ones, others = (_runs(found, axis, one, backend) for one in (level, own[backend]))
            mean = difference(ones, others, samples=samples)
            if mean is not None:
                made.append(Transfer(level, backend, mean))
                apart.append(less(ones, others))
        whole = len(apart) == len(foreign) > 1  # the mean over a part of them is another figure
        over_all = pooled(apart, samples=samples) if whole else None
        if over_all is not None:
            made.append(Transfer(level, None, over_all))
    return made


def _own(trained: Mapping[str, str], backends: Sequence[str]) -> dict[str, str]:
    """Backend → the level trained for it alone; of several the one with its name, else none."""
    own = {}
    for backend in backends:
        levels = [level for level, name in trained.items() if name == backend]
        if len(levels) == 1 or backend in levels:
            own[backend] = backend if backend in levels else levels[0]
    return own


def _runs(found: Sequence[Evaluated], axis: str, level: str, backend: str) -> dict[str, Values]:
    """What a run is besides its level on the axis → its values."""
    return {
        repr(sorted((k, v) for k, v in one.at.items() if k != axis)): one.values[backend]
        for one in found
        if one.at.get(axis) == level and backend in one.values
    }


def bracketed(found: Mean, sign: str = "") -> str:
    """[.395, .547]"""
    ends = (format(end, f"{sign}z.3f").replace("0.", ".", 1) for end in found[1:3])
    return f"[{', '.join(ends)}]"


def escaped(text: str) -> str:
    """Text as a cell of a Markdown table."""
    return text.replace("|", r"\|")
