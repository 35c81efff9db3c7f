"""The command `rlqr`: everything but training.

rlqr rewrite runs/demo/best "how do I …"
rlqr data inspect --config configs/demo.yaml
"""

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rewriter.console import configure_logging, fail_in_one_line

# Command → what it does, and the function (`module:function`) that adds its arguments to a parser
# and sets the default `run` to what is to be called with the parsed ones. A command's module is
# imported only when the command is given; it in turn imports model packages only when it runs.
COMMANDS = {
    "rewrite": ("rewrite queries with a trained model", "rewriter.commands.rewrite:configure"),
    "data": ("look at a collection", "rewriter.commands.data:configure"),
    "synth": ("write queries from documents", "rewriter.commands.synth:configure"),
    "eval": ("compare systems on backends", "rewriter.commands.eval:configure"),
    "compare": ("compare two result folders", "rewriter.commands.compare:configure"),
    "agreement": ("compare two annotators", "rewriter.commands.agreement:configure"),
    "report": ("a result folder as one page", "rewriter.commands.report:configure"),
    "index": ("build the indexes of a configuration", "rewriter.commands.index:configure"),
    "ablate": ("train and evaluate a grid", "rewriter.commands.ablate:configure"),
}


class _Parser(ArgumentParser):
    """Takes options among a command's words: `rlqr rewrite DIR --json QUERY`.

    argparse alone would end the queries at the first option, and its own parse_intermixed_args
    loses the meaning of `--` (Python 3.11).
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse with the options moved to the front."""
        words = sys.argv[1:] if args is None else list(args)
        # The words are this command's own, and some of them are no option's value.
        if self._subparsers is None and self._get_positional_actions():
            words = self._options_first(words)
        return super().parse_known_args(words, namespace)

    def _options_first(self, words: Sequence[str]) -> list[str]:
        options: list[str] = []
        others: list[str] = []
        rest = iter(words)
        for word in rest:
            name, equals, _ = word.partition("=")
            action = self._option_string_actions.get(name)
            if word == "--":  # no option comes after it
                others += [word, *rest]
            elif action is None:
                others.append(word)
            elif action.nargs is None and not equals:
                value = next(rest, "-")
                if value.startswith("-"):
                    return list(words)  # argparse says that the option lacks its value
                options.append(f"{word}={value}")
            else:
                options.append(word)
        return options + others


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run one command."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = _parsed(words)
    configure_logging()
    try:
        with fail_in_one_line():
            options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # `rlqr … | head` is done; nothing may be written any more, not even when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _parsed(words: Sequence[str]) -> Namespace:
    """The arguments; what is left over goes to a command that has a default for `overrides`."""
    whole = parser(words)
    options, rest = whole.parse_known_args(words)
    if rest and not hasattr(options, "overrides"):
        whole.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.overrides = rest
    return options


def parser(words: Sequence[str]) -> ArgumentParser:
    parser = _Parser(
        prog="rlqr",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rlqr {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (purpose, configure) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose, allow_abbrev=False)
        if name in words:
            module, _, function = configure.partition(":")
            getattr(import_module(module), function)(command)
    return parser


def _version() -> str:
    try:
        return version("rlqr")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0 (not installed)"


if __name__ == "__main__":
    main()
