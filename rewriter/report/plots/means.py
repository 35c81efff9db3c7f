"""NDCG@3 of every system with its interval, one plot a backend."""

from pathlib import Path

import rewriter.report.numbers as numbers
from rewriter.evaluation import HEADLINE, Summary
from rewriter.report.gather import Source
from rewriter.report.palette import LIGHT
from rewriter.report.plots.drawing import Plot, axes, save, short

WIDTH, ROW, AROUND = 3.5, 0.27, 0.62  # inches
LABEL = 21  # characters


def note(source: Source) -> str:
    """What the plots show."""
    said = "Mean NDCG@3 over queries and its 95% bootstrap interval; one scale for all backends."
    if source.baseline is None:
        return said
    return (
        f"{said} The dashed line is the {source.label(source.baseline)}. Green and red: the 95% "
        "interval of the paired change lies wholly above or below 0."
    )


def draw(source: Source, folder: Path) -> list[Plot]:
    """One plot a backend."""
    return [_plot(source, backend, folder) for backend in source.result]


def _plot(source: Source, backend: str, folder: Path) -> Plot:
    systems = source.result[backend]
    low, high = _limits(source)
    with axes(WIDTH, AROUND + ROW * len(systems)) as plot:
        for place, summary in enumerate(systems.values()):
            main, colour = summary[HEADLINE], LIGHT[_side(summary, source.baseline)]
            plot.plot([main["low"], main["high"]], [place, place], color=colour, linewidth=1.6)
            plot.plot([main["mean"]], [place], "o", color=colour, markersize=5)
        if source.baseline:
            mean = systems[source.baseline][HEADLINE]["mean"]
            plot.axvline(mean, color=LIGHT["edge"], linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        plot.set_xlim(low, high)
        plot.set_ylim(len(systems) - 0.5, -0.5)
        names = [short(source.label(name), LABEL) for name in systems]
        plot.set_yticks(range(len(systems)), names, color=LIGHT["ink"])
        plot.tick_params(axis="y", length=0)
        plot.spines["left"].set_visible(False)
        plot.grid(axis="x")
        plot.set_xlabel("NDCG@3")
        n = max(int(summary[HEADLINE]["n"]) for summary in systems.values())
        return save(plot, folder, f"means-{backend}", backend, f"n = {n:,} queries")


def _side(summary: Summary, baseline: str | None) -> str:
    found = summary.get(f"vs_{baseline}")
    return (numbers.sign(found) if found else "") or "muted"


def _limits(source: Source) -> tuple[float, float]:
    found = [
        summary[HEADLINE] for systems in source.result.values() for summary in systems.values()
    ]
    low, high = min(one["low"] for one in found), max(one["high"] for one in found)
    margin = max(0.04 * (high - low), 0.01)
    return max(-0.01, low - margin), min(1.01, high + margin)
