"""Two axes as a table of means: trained on × evaluated on, or any other two of a grid."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriter.report.faults import ReportError
from rewriter.report.files import json_file

Cell = tuple[float, float, float] | None


@dataclass(frozen=True)
class Matrix:
    """A table of means.

    rows, columns: names, the levels of row_axis and column_axis.
    values: (rows, columns) mean, low, high or None.
    diagonal: (row, column) of the cells that were evaluated on what they were trained for.
    runs: (rows, columns) how many runs are in a cell, and how many are wanted; empty if unknown.
    """

    rows: list[str]
    columns: list[str]
    values: list[list[Cell]]
    diagonal: frozenset[tuple[str, str]] = frozenset()
    row_axis: str = "trained on"
    column_axis: str = "evaluated on"
    runs: tuple[tuple[tuple[int, int], ...], ...] = ()

    @classmethod
    def read(cls, path: Path) -> "Matrix | None":
        """From JSON; None where there is no file. Raises ReportError for another shape."""
        found = json_file(path)
        if found is None:
            return None
        try:
            rows, columns = ([str(name) for name in found[key]] for key in ("rows", "columns"))
            values = [[_cell(cell) for cell in row] for row in found["values"]]
            pairs = found.get("diagonal", ())
            diagonal = frozenset((str(row), str(column)) for row, column in pairs)
            counts = found.get("runs", ())
            runs = tuple(tuple((int(over), int(all_)) for over, all_ in row) for row in counts)
            axes = (str(found.get(key, name)) for key, name in _AXES.items())
            row_axis, column_axis = (axis.replace("_", " ") for axis in axes)
        except (KeyError, TypeError, ValueError) as error:
            raise ReportError(f"{path}: {error}; {_WANTED}") from error
        shape = [len(columns)] * len(rows)
        if not rows or any([*map(len, table)] != shape for table in (values, runs or values)):
            raise ReportError(f"{path}: values do not have one row of cells a name; {_WANTED}")
        return cls(rows, columns, values, diagonal, row_axis, column_axis, runs)

    def part(self, row: int, column: int) -> str:
        """What a cell lacks: "1 of 2 runs", "missing", or nothing."""
        over, wanted = self.runs[row][column] if self.runs else (0, 0)
        if self.values[row][column] is None:
            return "missing" if wanted else ""
        return f"{over} of {wanted} runs" if over < wanted else ""

    @property
    def means(self) -> list[float]:
        """Of the cells that are there."""
        return [cell[0] for row in self.values for cell in row if cell is not None]


_AXES = {"row_axis": "trained on", "column_axis": "evaluated on"}  # key, where it is not given
_WANTED = (
    'wanted is {"rows": [names], "columns": [names], "values": [[[mean, low, high] or null]], '
    'and, if wished, "diagonal": [[row, column]], "runs": [[[over, wanted]]], "row_axis" and '
    '"column_axis": names}'
)


def _cell(cell: Any) -> Cell:
    if cell is None:
        return None
    mean, low, high = (float(number) for number in cell)
    return mean, low, high
