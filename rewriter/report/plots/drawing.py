"""A small axes in the page's colours, and how it becomes files and part of the page."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriter.report.faults import missing_extra
from rewriter.report.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 200
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,  # names are names, whatever signs they hold
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "rlqr",  # the same plot gives the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.edgecolor": LIGHT["edge"],
    "axes.labelcolor": LIGHT["muted"],
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["edge"],
    "ytick.color": LIGHT["edge"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["muted"],
    "grid.color": LIGHT["line"],
    "grid.linewidth": 0.8,
    "lines.solid_capstyle": "round",
}


@dataclass(frozen=True)
class Plot:
    """One drawn plot.

    svg: for the page. title, caption: plain text beside it. name: of the files. width: in pixels.
    """

    svg: str
    title: str
    caption: str
    name: str
    width: int


@contextmanager
def axes(width: float, height: float) -> Iterator["Axes"]:
    """New axes of so many inches. Raises ReportError where matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib") from error
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure.add_subplot()


def save(drawn: "Axes", folder: Path, name: str, title: str, caption: str = "") -> Plot:
    """Write `NAME.svg` and `NAME.png`, and give the plot for the page.

    Args:
        drawn: from `axes`, within its block.
        folder: it is there.
        name: in `[A-Za-z0-9_-]`, distinct.
        title: what is shown; also what a screen reader says.
        caption: the figures beside it.
    """
    figure: Any = drawn.get_figure()
    figure.savefig(folder / f"{name}.png", dpi=DPI, facecolor=LIGHT["bg"])
    buffer = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    width = round(figure.get_figwidth() * 100)
    return Plot(inline(text, name, f"{title}. {caption}"), title, caption, name, width)


_NAMES = {colour: name for name, colour in LIGHT.items()}


def inline(svg: str, name: str, said: str) -> str:
    """An SVG file as part of a page: its own ids, the page's colours and font."""
    svg = svg[svg.index("<svg ") :].strip()
    # The file's own style is for whole documents; the page has it in its own.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", _variable, svg)
    svg = re.sub(r"(font: (?:\w+ )?[\d.]+px) [^;\"]*", r"\1 var(--sans)", svg)
    head, _, rest = svg.partition(">")
    svg = re.sub(r'\s(?:width|height)="[^"]*"', "", head) + ">" + rest  # the page says how wide
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(said)}" ', 1)


def _variable(found: re.Match[str]) -> str:
    name = _NAMES.get(found.group())
    return f"var(--{name})" if name else found.group()


def short(text: str, length: int) -> str:
    """At most so many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
