"""`rlqr report`: a result folder as one page."""

from argparse import ArgumentParser, Namespace

from rewriter.commands.arguments import path


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "folder",
        type=path,
        metavar="DIR",
        help="of `rlqr eval` or of a training; report.html, table.md and plots/ are written there",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> None:
    """Write the page, the plots and the table."""
    from rewriter.report import write

    write(options.folder)
