"""`rlqr compare`: two result folders, refused where more than the system differs."""

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rewriter.commands.arguments import names, path

if TYPE_CHECKING:
    from rewriter.evaluation.differences import Comparison, SystemPair
    from rewriter.evaluation.facts import Difference

EXAMPLES = """\
rlqr compare runs/demo-eval runs/demo-2-eval
rlqr compare runs/demo-eval runs/demo-2-eval --systems demo,demo-2
"""
_RED, _PLAIN = "\033[31m", "\033[0m"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("first", type=path, metavar="A", help="a folder of `rlqr eval`")
    parser.add_argument("second", type=path, metavar="B", help="another one")
    parser.add_argument(
        "--systems",
        type=names,
        metavar="A,B",
        help="one system of each; default: those of the same name",
    )
    parser.add_argument(
        "--anyway", action="store_true", help="compare although more than the system differs"
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> None:
    """Write what differs, and the paired differences; exit code 1 where that is refused."""
    from rewriter.evaluation.differences import compare
    from rewriter.evaluation.judging import EvaluationError

    if options.systems is not None and len(options.systems) != 2:
        raise EvaluationError(
            f"--systems {','.join(options.systems)}: give two, one of each folder"
        )
    systems = None if options.systems is None else (options.systems[0], options.systems[1])
    found = compare(Path(options.first), Path(options.second), systems)
    sys.stdout.write("\n".join(_differences(found.differences)) + "\n")
    if found.differences and not options.anyway:
        sys.stderr.write(
            f"error: {len(found.differences)} facts differ besides the system, so that a "
            "difference of the figures may be theirs; evaluate both alike, or add --anyway\n"
        )
        raise SystemExit(1)
    sys.stdout.write("\n".join(_pairs(found)) + "\n")


def _differences(found: "Iterable[Difference]") -> Iterator[str]:
    lines = [f"differs: {key}: {first} | {second}" for key, first, second in found]
    if not lines:
        yield "nothing differs besides the system"
    yield from map(_red, lines)


def _red(line: str) -> str:
    red = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"{_RED}{line}{_PLAIN}" if red else line


def _pairs(found: "Comparison") -> Iterator[str]:
    if not found.pairs:
        yield "no system has the same name in both; give --systems A,B"
    for pair in found.pairs:
        yield _pair(pair)
        if pair.left_out:
            yield f"  {pair.left_out} queries left out, counted in one folder only"
        for key, first, second in pair.made:
            yield _red(f"  made otherwise: {key}: {first} | {second}")
    for what, name, folder in found.alone:
        fix = "; give --systems A,B" if what == "system" else ""
        yield f"{what} {name}: in {folder} only, not compared{fix}"


def _pair(pair: "SystemPair") -> str:
    made = pair.found
    name = pair.first if pair.first == pair.second else f"{pair.first} → {pair.second}"
    return (
        f"{pair.backend}  {name}: NDCG@3 {pair.means[0]:.3f} → {pair.means[1]:.3f}, "
        f"{made.diff:+z.3f} [{made.low:+z.3f}, {made.high:+z.3f}], "
        f"win/tie/loss {made.win}/{made.tie}/{made.loss}, p {made.p:.2g}, {made.n} queries"
    )
