"""One factor of a grid at a time: NDCG@3 of its levels, and the held-out curves of its runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewriter.report.faults import ReportError
from rewriter.report.files import json_file
from rewriter.report.gather import Source
from rewriter.report.palette import LIGHT
from rewriter.report.plots.drawing import Plot, axes, save, short

WIDTH, ROW, AROUND, CURVE = 3.5, 0.27, 0.62, 1.6  # inches
LABEL = 21  # characters


def note(source: Source) -> str:
    """What the plots show."""
    return (
        "Mean NDCG@3 on the test queries of all runs with a level, whatever their other levels, "
        "and its 95% interval over runs and queries. Curves: held-out NDCG@3, one line a "
        "run, by which each training chose its best adapter; by the completions sampled so far, "
        "those of a warm start among them."
    )


def draw(source: Source, folder: Path) -> list[Plot]:
    """A plot for each axis and backend, and one for the curves of each level."""
    path = source.folder / "factors.json"
    found = json_file(path)
    if found is None:
        return []
    try:
        levels = [_levels(one, folder) for one in found["factors"]]
        return levels + [plot for one in found["curves"] for plot in _curves(one, folder)]
    except (KeyError, TypeError) as error:
        raise ReportError(f"{path}: {error!r}; `rlqr ablate` writes it anew") from error


def _levels(factor: dict[str, Any], folder: Path) -> Plot:
    levels: Sequence[dict[str, Any]] = factor["levels"]
    axis, backend = factor["axis"], factor["backend"]
    with axes(WIDTH, AROUND + ROW * len(levels)) as plot:
        for place, level in enumerate(levels):
            colour = LIGHT["series-1"]
            plot.plot([level["low"], level["high"]], [place, place], color=colour, linewidth=1.6)
            plot.plot([level["mean"]], [place], "o", color=colour, markersize=5)
        plot.set_ylim(len(levels) - 0.5, -0.5)
        names = [short(level["name"], LABEL) for level in levels]
        plot.set_yticks(range(len(levels)), names, color=LIGHT["ink"])
        plot.tick_params(axis="y", length=0)
        plot.spines["left"].set_visible(False)
        plot.grid(axis="x")
        plot.set_xlabel("NDCG@3")
        runs = sorted({level["runs"] for level in levels})
        said = f"runs a level: {'–'.join(map(str, dict.fromkeys((runs[0], runs[-1]))))}"
        return save(plot, folder, f"factor-{axis}-{backend}", f"{axis}, on {backend}", said)


def _curves(factor: dict[str, Any], folder: Path) -> list[Plot]:
    """One plot a level, all on the same two scales."""
    runs: Sequence[dict[str, Any]] = factor["runs"]
    top = max(value for run in runs for value in run["values"])
    last = max(made for run in runs for made in run["completions"])
    plots = []
    for number, level in enumerate(dict.fromkeys(run["level"] for run in runs)):
        with axes(WIDTH, CURVE) as plot:
            own = [run for run in runs if run["level"] == level]
            for run in own:
                plot.plot(run["completions"], run["values"], color=LIGHT["series-1"], linewidth=1.4)
            plot.set_xlim(0, 1.02 * last + 1)
            plot.set_ylim(0, min(1.0, 1.08 * top + 0.01))
            plot.grid(axis="y")
            plot.set_xlabel("completions")
            name, title = f"curve-{factor['axis']}-{number}", f"{factor['axis']}: {level}"
            plots.append(save(plot, folder, name, title, f"{len(own)} runs"))
    return plots
