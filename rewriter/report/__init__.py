"""A result folder as one page: `rlqr report DIR`.

    from rewriter.report import write

    write("runs/demo")  # runs/demo/report.html, table.md, plots/*.svg and *.png

The folder is that of an evaluation or of a training. `report.html` is one file without any outside
resource; everything in it is computed from the folder's records.
"""

import logging
from pathlib import Path

from rewriter.records import write_lines
from rewriter.report.faults import ReportError
from rewriter.report.gather import gather
from rewriter.report.markdown import tables
from rewriter.report.page import render

__all__ = ["ReportError", "write"]

logger = logging.getLogger(__name__)

PAGE, TABLE, PLOTS = "report.html", "table.md", "plots"


def write(folder: str | Path) -> Path:
    """Write the page, the plots and the Markdown table into the folder.

    Args:
        folder: holds at least `records.jsonl`; see `gather` for what else is used.

    Returns:
        The page.

    Raises:
        ReportError: there are no records, files contradict each other or cannot be read, or an
            extra is not installed.
        RecordError: a line of the records is none.
    """
    folder = Path(folder)
    source = gather(folder)
    page = render(source, folder / PLOTS)
    write_lines([page], folder / PAGE)
    write_lines([tables(source)], folder / TABLE)
    logger.info("page   %s (%.1f MB)", folder / PAGE, (folder / PAGE).stat().st_size / 1e6)
    logger.info("plots  %s", folder / PLOTS)
    logger.info("table  %s", folder / TABLE)
    return folder / PAGE
