"""Trained on × evaluated on: how a rewriter does on a backend that it was not trained for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriter.report.faults import ReportError
from rewriter.report.files import json_file

Cell = tuple[float, float, float] | None


@dataclass(frozen=True)
class Matrix:
    """A table of means.

    rows: trained on; columns: evaluated on; values: (rows, columns) mean, low, high or None.
    diagonal: (row, column) of the cells that were evaluated on what they were trained for.
    """

    rows: list[str]
    columns: list[str]
    values: list[list[Cell]]
    diagonal: frozenset[tuple[str, str]] = frozenset()

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
        except (KeyError, TypeError, ValueError) as error:
            raise ReportError(f"{path}: {error}; {_WANTED}") from error
        if not rows or [len(row) for row in values] != [len(columns)] * len(rows):
            raise ReportError(f"{path}: values do not have one row of cells a name; {_WANTED}")
        return cls(rows, columns, values, diagonal)

    @property
    def means(self) -> list[float]:
        """Of the cells that are there."""
        return [cell[0] for row in self.values for cell in row if cell is not None]


_WANTED = (
    'wanted is {"rows": [names], "columns": [names], "values": [[[mean, low, high] or null]], '
    'and, where cells are to be framed, "diagonal": [[row, column]]}'
)


def _cell(cell: Any) -> Cell:
    if cell is None:
        return None
    mean, low, high = (float(number) for number in cell)
    return mean, low, high
