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
    from rewards.agreement import agreement, check_settled, merge

    _check_outputs(options)
    first, second = read_qrels(options.first), read_qrels(options.second)
    found = agreement(first, second)
    settled = read_settled(options.adjudicated) if options.adjudicated else {}
    check_settled(first, second, settled)
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


def _check_outputs(options: Namespace) -> None:
    """What people judged and settled must not be written over."""
    from rewards.agreement import AgreementError

    inputs = [options.first, options.second, options.adjudicated]
    given = {Path(text).resolve() for text in inputs if text}
    for option, text in (("--conflicts", options.conflicts), ("--merged", options.merged)):
        if text is None:
            continue
        place = Path(text).resolve()
        if place in given:
            raise AgreementError(
                f"{option} {text}: is read, or written by another option; give another file"
            )
        given.add(place)
        folder = next((one for one in place.parents if one.exists()), place.parent)
        if place.is_dir() or not folder.is_dir():
            raise AgreementError(f"{option} {text}: cannot be a file there; give another path")
    if options.conflicts:
        _keep_settled(options.conflicts)


def _keep_settled(path: str) -> None:
    from retrievers.loaders.conflicts import COLUMNS, read_settled
    from retrievers.loaders.lines import open_lines
    from rewards.agreement import AgreementError

    if not Path(path).is_file():
        return
    head = next((line for _, line in open_lines(Path(path))), "")
    if head.split("\t") != list(COLUMNS):
        if head:
            raise AgreementError(
                f"--conflicts {path}: is there, and no file of conflicts; give another file"
            )
        return
    settled = sum(map(len, read_settled(path).values()))
    if settled:
        raise AgreementError(
            f"--conflicts {path}: holds {settled} settled grades, which would be lost; give it as "
            "--adjudicated, and another file for the conflicts that are left"
        )


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
