"""A heat map: rewriters by what they were trained on, and where they were evaluated."""

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
        "Mean NDCG@3 and its 95% interval. A row is a rewriter by the backend it was trained on, a "
        "column the backend it was evaluated on; an empty cell was not evaluated. Framed: "
        "evaluated on the backend that it was trained for."
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
                if cell is None:
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
                where: dict[str, Any] = {"ha": "center", "va": "center", "color": LIGHT[ink]}
                plot.text(x + 0.5, y + 0.36, numbers.value(mean), fontsize=9.5, **where)
                plot.text(x + 0.5, y + 0.68, text, fontsize=7, **where)
        plot.set_xlim(0, columns)
        plot.set_ylim(rows, 0)
        plot.set_xticks([x + 0.5 for x in range(columns)], [short(n, 14) for n in matrix.columns])
        plot.set_yticks([y + 0.5 for y in range(rows)], [short(n, 18) for n in matrix.rows])
        plot.tick_params(length=0, labelcolor=LIGHT["ink"], top=True, bottom=False)
        plot.tick_params(labeltop=True, labelbottom=False)
        plot.spines[:].set_visible(False)
        return save(plot, folder, "transfer", "Trained on (rows), evaluated on (columns)")
