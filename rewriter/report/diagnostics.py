"""Figures that say why a rewriter gains or not, as one table a backend or system."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """heading: may be empty. columns: of the figures. rows: name, one text a column."""

    heading: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]


def diagnostics(found: Any) -> list[Table]:
    """Tables of nested objects whose last level is name → number; other values are left out.

    {"trained": {"length": 9.1}} is one table with a row; one level more gives it a heading.
    """
    return list(_tables(found, "")) if isinstance(found, dict) else []


def _tables(found: dict[str, Any], heading: str) -> Iterator[Table]:
    figures = {name: row for name, row in found.items() if _is_row(row)}
    if figures:
        columns = list(dict.fromkeys(key for row in figures.values() for key in _numbers(row)))
        rows = [
            (name, [_text(_numbers(row).get(key)) for key in columns])
            for name, row in figures.items()
        ]
        yield Table(heading, [column.replace("_", " ") for column in columns], rows)
    for name, inner in found.items():
        if isinstance(inner, dict):
            deeper = {key: value for key, value in inner.items() if isinstance(value, dict)}
            yield from _tables(deeper, f"{heading} · {name}" if heading else name)


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and bool(_numbers(row))


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    return {
        key: value
        for key, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _text(value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
    return text.replace("-", "−")
