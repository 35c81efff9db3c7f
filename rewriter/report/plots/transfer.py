"""A heat map of two axes, such as what was trained on and where it was evaluated."""

from pathlib import Path
from typing import Any

import rewriter.report.numbers as numbers
from rewriter.report.gather import Source
from rewriter.report.matrix import Matrix
from rewriter.report.palette import LIGHT, heat
from rewriter.report.plots.drawing import Plot, axes, save, short

CELL, LABELS, ROW, AROUND = 0.95, 1.4, 0.52, 0.55  # inches


def note(source: Source) -> str:
    """What the plot shows."""
    return (
        "Mean NDCG@3 and its 95% interval over runs and queries. An empty cell was not evaluated. "
        "Framed: evaluated on the backend that it was trained for."
    )


def draw(source: Source, folder: Path) -> list[Plot]:
    """One plot, if the folder has a matrix."""
    return [_plot(source.matrix, folder)] if source.matrix and source.matrix.means else []


def _plot(matrix: Matrix, folder: Path) -> Plot:
    from matplotlib.patches import Rectangle

    rows, columns = len(matrix.rows), len(matrix.columns)
    low, high = min(matrix.means), max(matrix.means)
    with axes(LABELS + CELL * columns, AROUND + ROW * rows) as plot:
        for y, row in enumerate(matrix.values):
            for x, cell in enumerate(row):
                where: dict[str, Any] = {"ha": "center", "va": "center"}
                part = matrix.part(y, x)
                if cell is None:
                    plot.text(x + 0.5, y + 0.5, part, fontsize=7, color=LIGHT["muted"], **where)
                    continue
                mean, *ends = cell
                fill, ink = heat((mean - low) / (high - low) if high > low else 0.5)
                box = Rectangle((x + 0.02, y + 0.02), 0.96, 0.96, color=LIGHT[fill], linewidth=0)
                plot.add_patch(box)
                if (matrix.rows[y], matrix.columns[x]) in matrix.diagonal:
                    frame = Rectangle((x + 0.04, y + 0.06), 0.92, 0.88, fill=False)
                    frame.set(edgecolor=LIGHT[ink], linewidth=1.4)
                    plot.add_patch(frame)
                text = numbers.interval({"low": ends[0], "high": ends[1]})
                where["color"] = LIGHT[ink]
                up = 0.12 if part else 0.0
                plot.text(x + 0.5, y + 0.36 - up, numbers.value(mean), fontsize=9.5, **where)
                plot.text(x + 0.5, y + 0.68 - up, text, fontsize=7, **where)
                plot.text(x + 0.5, y + 0.82, part, fontsize=7, **where)
        plot.set_xlim(0, columns)
        plot.set_ylim(rows, 0)
        plot.set_xticks([x + 0.5 for x in range(columns)], [short(n, 14) for n in matrix.columns])
        plot.set_yticks([y + 0.5 for y in range(rows)], [short(n, 18) for n in matrix.rows])
        plot.tick_params(length=0, labelcolor=LIGHT["ink"], top=True, bottom=False)
        plot.tick_params(labeltop=True, labelbottom=False)
        plot.spines[:].set_visible(False)
        title = f"{matrix.row_axis} (rows), {matrix.column_axis} (columns)"
        return save(plot, folder, "transfer", title[:1].upper() + title[1:])
