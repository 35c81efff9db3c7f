"""`rlqr data inspect`: what a collection holds, before anything is trained on it."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from retrievers.loaders import LOADERS
from rewriter.commands.arguments import count, path

NEAR = 0.8
EXAMPLES = """\
rlqr data inspect --config configs/demo.yaml
rlqr data inspect --loader stdlib
rlqr data inspect data/scifact
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
    source.add_argument(
        "directory",
        nargs="?",
        type=path,
        metavar="DIR",
        help="a folder; the loader is guessed from what lies there, and named",
    )
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

    collection, threshold, said = _opened(options)
    if options.near_duplicates is not None:
        threshold = options.near_duplicates
    sys.stdout.write(f"{said}{inspect(collection, threshold, options.samples)}\n")


def _opened(options: Namespace) -> tuple[Any, float, str]:
    """The collection, from which similarity documents are near-duplicates, and how it was read."""
    from retrievers.loaders import load

    given = {"folder": options.folder} if options.folder is not None else {}
    if options.config:
        from rewriter.config import load as load_config
        from rewriter.config.collection import open_collection

        config = load_config(
            options.config, [f"--collection.options.{key}={value}" for key, value in given.items()]
        )
        return open_collection(config), config.collection.near_duplicates, ""
    if options.loader:
        return load(options.loader, **given), NEAR, ""
    from retrievers.loaders.guess import guess

    found = guess(Path(options.directory))
    shown = ", ".join(f"{key}: {_shown(value)}" for key, value in found.options.items() if value)
    said = f"read by the loader {found.loader!r} ({found.reason}), options {{{shown}}}\n"
    return load(found.loader, **found.options), NEAR, said


def _shown(value: Any) -> str:
    """As it is written in a configuration."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
