"""The change of every query against the baseline, sorted; one plot a backend and system."""

from collections.abc import Sequence
from pathlib import Path

from rewards.comparison import TIE
from rewriter.evaluation import HEADLINE
from rewriter.records import by
from rewriter.report.gather import Source
from rewriter.report.palette import LIGHT
from rewriter.report.plots.drawing import Plot, axes, save

WIDTH, HEIGHT = 2.7, 1.75  # inches
POINTS = 400  # what a screen can show of thousands of queries


def note(source: Source) -> str:
    """What the plots show."""
    return (
        f"NDCG@3 with the system minus NDCG@3 with the {source.label(source.baseline or '')}, one "
        "bar a query, the largest gain on the left. Queries that did not change lie in the middle."
    )


def draw(source: Source, folder: Path) -> list[Plot]:
    """One plot for each backend and system other than the baseline."""
    plots = []
    for backend, records in by(source.records, "backend").items():
        columns = {
            system: {row.query_id: row.metrics[HEADLINE] for row in rows if not row.excluded}
            for system, rows in by(records, "system").items()
        }
        before = columns.get(source.baseline or "")
        for system, after in columns.items():
            if before is not None and system != source.baseline:
                # Not a query that only one of the two has: its search failed with the other.
                changed = [value - before[q] for q, value in after.items() if q in before]
                plots.append(_plot(source, backend, system, changed, folder))
    return plots


def _plot(source: Source, backend: str, system: str, changed: list[float], folder: Path) -> Plot:
    ordered = sorted(changed, reverse=True)
    places, values = outline(ordered)
    with axes(WIDTH, HEIGHT) as plot:
        for side, where in (("gain", [v > 0 for v in values]), ("loss", [v < 0 for v in values])):
            plot.fill_between(
                places, values, 0, where=where, color=LIGHT[side], linewidth=0, step="post"
            )
        plot.axhline(0, color=LIGHT["edge"], linewidth=0.8)
        plot.set_xlim(0, len(ordered))
        plot.set_ylim(-1.05, 1.05)
        plot.set_yticks([-1, 0, 1], ["−1", "0", "+1"])
        plot.set_xticks([0, len(ordered)], ["", f"{len(ordered):,} queries"], ha="right")
        plot.tick_params(axis="x", length=0)
        plot.spines["bottom"].set_visible(False)
        name = f"changes-{backend}-{system}"
        return save(plot, folder, name, f"{source.label(system)}, {backend}", _counts(changed))


def outline(ordered: Sequence[float]) -> tuple[list[float], list[float]]:
    """A step line through sorted values: places 0 … n, the last value twice.

    Equal neighbours become one step; of more steps than can be seen, evenly spaced values.
    """
    step = max(1, len(ordered) // POINTS)
    places = [
        at
        for at in range(len(ordered))
        if at == 0 or (ordered[at] != ordered[at - 1] if step == 1 else at % step == 0)
    ]
    values = [ordered[at] for at in places]
    return [*map(float, places), float(len(ordered))], [*values, values[-1]]


def _counts(changed: Sequence[float]) -> str:
    win, loss = sum(c > TIE for c in changed), sum(c < -TIE for c in changed)
    same = len(changed) - win - loss
    return f"{win:,} better, {same:,} equal, {loss:,} worse; n = {len(changed):,}"
