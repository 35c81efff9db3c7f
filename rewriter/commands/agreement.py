"""`rlqr agreement`: two annotators' judgements: how far they agree, what is to be settled."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rewriter.commands.arguments import path

if TYPE_CHECKING:
    from rewards.agreement import Agreement

EXAMPLES = """\
rlqr agreement anna.json ben.json --conflicts to-settle.tsv
rlqr agreement anna.json ben.json --adjudicated settled.tsv --merged qrels.json

Judgements are JSON {"q1": {"doc": 2}}, BEIR's TSV, or TREC. The file of conflicts has a last column
"settled"; fill it in and give it back as --adjudicated.
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("first", type=path, metavar="A", help="judgements of one annotator")
    parser.add_argument("second", type=path, metavar="B", help="those of the other one")
    parser.add_argument(
        "--adjudicated",
        type=path,
        metavar="C",
        help="grades of the conflicts by a third one: judgements, or the filled-in conflicts",
    )
    parser.add_argument(
        "--conflicts", type=path, metavar="FILE", help="write the conflicts that are not settled"
    )
    parser.add_argument(
        "--merged",
        type=path,
        metavar="FILE",
        help="write the merged judgements, once all conflicts are settled (.json, .tsv, .trec)",
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> None:
    """Write the figures and the files."""
    from retrievers.loaders.conflicts import read_settled, write_conflicts
    from retrievers.loaders.judgements import read_qrels, write_qrels
    from rewards.agreement import agreement, merge

    first, second = read_qrels(options.first), read_qrels(options.second)
    found = agreement(first, second)
    settled = read_settled(options.adjudicated) if options.adjudicated else {}
    sys.stdout.write("\n".join(_lines(found)) + "\n")
    left = [c for c in found.conflicts if c.document not in settled.get(c.query, {})]
    if found.conflicts:
        sys.stdout.write(f"conflicts        {len(found.conflicts)}, {len(left)} not settled\n")
    if options.conflicts:
        write_conflicts(left, Path(options.conflicts))
        sys.stdout.write(f"conflicts in     {options.conflicts}\n")
    if options.merged:
        write_qrels(merge(first, second, settled), options.merged)
        sys.stdout.write(f"merged in        {options.merged}\n")


def _lines(found: "Agreement") -> Iterator[str]:
    from rewards.agreement import BAR

    said = "reached" if found.reached else "missed"
    yield f"judged by both   {found.n}"
    yield f"judged by one    {found.only_first} by the first, {found.only_second} by the second"
    yield f"raw agreement    {found.raw:.1%}, the bar of {BAR:.0%} is {said}"
    for name, value in (
        ("Cohen's kappa", found.kappa),
        ("linear weights", found.linear),
        ("quadratic weights", found.quadratic),
    ):
        yield f"{name:17}{'not defined: one grade throughout' if value is None else f'{value:.3f}'}"
