"""`rlqr synth`: queries written from documents, with no annotation."""

import logging
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rewriter.commands.arguments import count, path

if TYPE_CHECKING:
    from rewriter.config import Config
    from rewriter.synthesis.pipeline import Outcome

logger = logging.getLogger(__name__)

EXAMPLES = """\
rlqr synth --config configs/synth/demo.yaml
rlqr synth --config configs/synth/demo.yaml --limit 10 --output data/trial
rlqr synth --config mine.yaml --synthesis.generator.options.concurrency 32

Any key of the configuration can be overridden. A synthesis that was stopped goes on where it was
when it is given the same output again; other filters ask the generator nothing anew.
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--config", type=path, metavar="FILE", required=True, help="YAML file")
    parser.add_argument(
        "--limit", type=count, metavar="N", help="documents at most; default: those of the file"
    )
    parser.add_argument(
        "--output", type=path, metavar="DIR", help="default: `synthesis.output` of the file"
    )
    parser.set_defaults(run=run, overrides=[])


def run(options: Namespace) -> None:
    """Write the folder, show what was kept and why the rest was not."""
    from rewriter.config import load
    from rewriter.synthesis.pipeline import run as synthesise

    config = load(options.config, options.overrides)
    default = config.synthesis.output if config.synthesis else "."
    output = Path(options.output or default)
    _set_threads(config)
    outcome = synthesise(config, output, options.limit)
    sys.stdout.write("\n".join(_lines(outcome)) + "\n")
    logger.info("collection   %s", output)
    logger.info("look at it   rlqr data inspect --loader beir --folder %s", output)


def _set_threads(config: "Config") -> None:
    if config.threads is not None:
        import torch

        torch.set_num_threads(config.threads)


def _lines(outcome: "Outcome") -> Iterator[str]:
    counts = Counter((one.filter, one.reason) for one in outcome.dropped)
    yield f"{len(outcome.kept)} of {len(outcome.kept) + len(outcome.dropped)} queries are kept"
    for (name, reason), number in counts.most_common():
        yield f"  {number:6d} dropped: {name}: {reason}"
    for split, ids in outcome.splits.items():
        yield f"  {len(ids):6d} in {split}"
