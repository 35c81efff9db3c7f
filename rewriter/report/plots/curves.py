"""A training step by step: held-out NDCG@3, reward, groups without a signal, length."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewriter.evaluation import HEADLINE
from rewriter.report.gather import Source
from rewriter.report.palette import LIGHT
from rewriter.report.plots.drawing import Plot, axes, save

WIDTH, HEIGHT = 3.5, 2.1  # inches
SERIES = 4  # lines that can be told apart

Curve = tuple[list[float], list[float]]  # steps, values

# Name of the file → title, and which logged keys are lines, by the first group of the pattern.
PLOTS = {
    "held-out": ("Held-out NDCG@3", rf"eval_(.+)_{HEADLINE}"),
    "reward": ("Training reward", r"rewards/(?!format/)(.+)/mean"),
    "no-signal": ("Share of groups without a signal", r"(groups/equal_reward)"),
    "length": ("Completion length, tokens", r"completions/(mean)_length"),
}


def note(source: Source) -> str:
    """What the plots show."""
    counts = {int(row["n"]) for row in source.evaluations if isinstance(row.get("n"), int)}
    held_out = f" Held-out: n = {max(counts):,} queries." if counts else ""
    return (
        "By training step. Thin: each logged step; thick: the mean of the steps around it, a tenth "
        f"of the run.{held_out} A group without a signal has completions of equal reward only."
    )


def draw(source: Source, folder: Path) -> list[Plot]:
    """The plots that the log has lines for."""
    plots = []
    for name, (title, pattern) in PLOTS.items():
        curves = _curves(source.steps, pattern)
        if any(len(steps) > 1 for steps, _ in curves.values()):
            plots.append(_plot(name, title, curves, folder))
    return plots


def _curves(rows: Sequence[Mapping[str, Any]], pattern: str) -> dict[str, Curve]:
    curves: dict[str, Curve] = {}
    for row in rows:
        for key, value in row.items():
            found = re.fullmatch(pattern, key)
            if found and isinstance(value, int | float) and isinstance(row.get("step"), int):
                steps, values = curves.setdefault(found.group(1), ([], []))
                steps.append(row["step"])
                values.append(value)
    return dict(list(curves.items())[:SERIES])


def _plot(name: str, title: str, curves: Mapping[str, Curve], folder: Path) -> Plot:
    with axes(WIDTH, HEIGHT) as plot:
        for number, (label, (steps, values)) in enumerate(curves.items(), 1):
            line: Callable[..., Any] = plot.plot
            colour = LIGHT[f"series-{number}"]
            if name == "held-out":
                line(steps, values, "o-", color=colour, linewidth=1.6, markersize=4, label=label)
                continue
            line(steps, values, color=colour, linewidth=0.7, alpha=0.5)
            line(steps, smooth(values), color=colour, linewidth=1.8, label=label)
        plot.set_xlabel("step")
        plot.grid(axis="y")
        plot.margins(x=0.02)
        if len(curves) > 1:
            plot.legend(frameon=False, fontsize=8, labelcolor=LIGHT["ink"])
        return save(plot, folder, f"curves-{name}", title, _ends(curves, name))


def smooth(values: Sequence[float]) -> list[float]:
    """Means over windows of a tenth of the values, centred, shorter at the ends."""
    half = max(1, len(values) // 20)
    windows = [values[max(0, at - half) : at + half + 1] for at in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def _ends(curves: Mapping[str, Curve], name: str) -> str:
    """Held-out values: the first and the best one of every line."""
    if name != "held-out":
        return ", ".join(curves) if len(curves) == 1 and name == "reward" else ""
    parts = []
    for label, (steps, values) in curves.items():
        best = max(range(len(values)), key=values.__getitem__)
        parts.append(
            f"{label} {values[0]:.3f} at step {steps[0]}, best {values[best]:.3f} at {steps[best]}"
        )
    return "; ".join(parts)
