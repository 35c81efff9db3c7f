"""`rlqr rewrite`: queries → what to send to the search engine."""

import json
import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rewriter.commands.arguments import path
from rewriter.generation import BLANK

if TYPE_CHECKING:
    from rewriter.policy import Rewriter
    from rewriter.records import Rewrite

logger = logging.getLogger(__name__)


class QueryError(ValueError):
    """Queries that cannot be read."""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("folder", type=path, metavar="DIR", help="the `best` folder of a run")
    parser.add_argument(
        "queries",
        metavar="QUERY",
        nargs="*",
        default=[],  # without a default, argparse calls it required
        help="without any, one a line from standard input; a blank one stays blank",
    )
    parser.add_argument("--base", metavar="MODEL", help="where the base model is, if it moved")
    parser.add_argument(
        "--backend", metavar="NAME", help="what reads the rewrites, if the prompt depends on it"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="one object a line: query, rewrite (null if it failed), search_text, failure",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> None:
    """Write one line for each query, in order: the search text, or JSON."""
    from rewriter.policy import Rewriter

    rewriter = Rewriter.from_pretrained(options.folder, base=options.base)
    queries = iter(options.queries) if options.queries else _lines()
    failed = count = 0
    while batch := list(islice(queries, rewriter.decoding.batch_size)):
        made_of = zip(batch, rewriter.rewrites(batch, options.backend), strict=True)
        for query, made in made_of:
            sys.stdout.write(_line(rewriter, query, made, options.json) + "\n")
            failed += made.failure not in {None, BLANK}  # of a blank one nothing was asked
        sys.stdout.flush()
        count += len(batch)
    if failed:
        logger.warning(
            "%d of %d queries could not be rewritten and stay as they are", failed, count
        )


def _line(rewriter: "Rewriter", query: str, made: "Rewrite", as_json: bool) -> str:
    text = query if made.text is None else rewriter.prompt.search_text(query, made.text)
    if not as_json:
        return " ".join(text.split())  # one line, also for a query of several
    row = {"query": query, "rewrite": made.text, "search_text": text, "failure": made.failure}
    return json.dumps(row, ensure_ascii=False)


def _lines() -> Iterator[str]:
    """Queries from standard input, blank ones too: line N of the output belongs to line N."""
    if sys.stdin.isatty():
        logger.info("type queries, one a line; end with Ctrl-D")
    try:
        for line in sys.stdin:
            yield line.strip()
    except UnicodeDecodeError as error:
        raise QueryError(f"standard input is not UTF-8 ({error}); convert it") from error
