"""`rlqr data inspect`: what a collection holds, before anything is trained on it."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter

from retrievers.loaders import LOADERS
from rewriter.commands.arguments import count, path

EXAMPLES = """\
rlqr data inspect --config configs/demo.yaml
rlqr data inspect --loader stdlib
rlqr data inspect --loader beir --folder data/scifact
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="counts, lengths, judgements, leaks, samples",
        description=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    source = inspect.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", type=path, metavar="FILE", help="that of a configuration")
    source.add_argument("--loader", choices=sorted(LOADERS), help="a collection without one")
    inspect.add_argument(
        "--folder", type=path, metavar="DIR", help="what the loader reads, if it reads one"
    )
    inspect.add_argument(
        "--near_duplicates",
        type=float,
        metavar="SHARE",
        help="similarity from which documents count as near-duplicates (default 0.8)",
    )
    inspect.add_argument(
        "--samples", type=count, default=2, metavar="N", help="queries shown a split (%(default)s)"
    )
    inspect.set_defaults(run=run)


def run(options: Namespace) -> None:
    """Write the report."""
    from retrievers.inspection import inspect
    from retrievers.loaders import load
    from rewriter.config import load as load_config
    from rewriter.config.collection import open_collection

    threshold = options.near_duplicates
    if options.config:
        overrides = (
            [f"--collection.options.folder={options.folder}"] if options.folder is not None else []
        )
        config = load_config(options.config, overrides)
        collection = open_collection(config)
        threshold = config.collection.near_duplicates if threshold is None else threshold
    else:
        given = {"folder": options.folder} if options.folder is not None else {}
        collection = load(options.loader, **given)
    report = inspect(collection, 0.8 if threshold is None else threshold, options.samples)
    sys.stdout.write(report + "\n")
