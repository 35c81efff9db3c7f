"""The plots: each one drawn once, saved as SVG and PNG, and put into the page as SVG.

A plot is small, for one backend or one system, so that a phone shows it as large as a screen does.
"""

from pathlib import Path

from rewriter.report.gather import Source
from rewriter.report.plots import changes, curves, factors, means, transfer
from rewriter.report.plots.drawing import Plot

__all__ = ["Plot", "Section", "draw"]

# Heading and module, in the order of the page; what only a grid has comes before its many runs. A
# module has `draw(source, folder)`, which gives plots, and `note(source)`, which says what they
# show.
SECTIONS = {
    "transfer": ("Two factors at a time", transfer),
    "factors": ("One factor at a time", factors),
    "means": ("NDCG@3", means),
    "changes": ("Change by query", changes),
    "curves": ("Training", curves),
}


class Section:
    """Plots of one kind under one heading."""

    def __init__(self, name: str, source: Source, folder: Path) -> None:
        self.name = name
        self.heading, module = SECTIONS[name]
        self.plots: list[Plot] = module.draw(source, folder)
        self.note = module.note(source) if self.plots else ""


def draw(source: Source, folder: Path) -> list[Section]:
    """Draw what the source has data for; files are named `SECTION-….svg` and `.png`."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = [Section(name, source, folder) for name in SECTIONS]
    return [section for section in sections if section.plots]
