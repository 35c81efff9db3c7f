"""`rlqr index`: the indexes of a configuration, built ahead of training."""

import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rewriter.commands.arguments import path

if TYPE_CHECKING:
    from retrievers import Documents
    from rewriter.config import Config

EXAMPLES = """\
rlqr index --config mine.yaml
rlqr index --config mine.yaml --index_dir indexes --reward.backends semantic
rlqr index --config mine.yaml --rebuild

Every setting of the file can be given as --section.key VALUE, as for train.py, which opens what is
built here. An index that is there already is checked, every byte of it, and opened.
"""
ROW = "{:12} {:8} {:>12} {:>11} {:>9} {:>12}  {}\n"
HEAD = ("backend", "state", "documents", "on disk", "time", "peak memory", "folder")


class NoIndexFolderError(ValueError):
    """The configuration keeps its indexes in memory."""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.description = f"{parser.description}\n\n{EXAMPLES}"
    parser.add_argument("--config", type=path, metavar="FILE", required=True, help="YAML file")
    parser.add_argument(
        "--rebuild", action="store_true", help="remove what is there and build it anew"
    )
    parser.set_defaults(run=run, overrides=[])


def run(options: Namespace) -> None:
    """Build or open each index, one after the other, and write a line for each."""
    from retrievers import keeps_index
    from rewriter.config import load
    from rewriter.config.backends import folder_of
    from rewriter.config.collection import open_collection

    config = load(options.config, options.overrides)
    searched = config.searched()
    folders = {name: _folder(folder_of(config, name)) for name in searched if keeps_index(name)}
    if folders:
        collection = open_collection(config)
        sys.stdout.write(ROW.format(*HEAD))
        for name, folder in folders.items():
            sys.stdout.write(_line(config, collection, name, folder, options.rebuild))
            sys.stdout.flush()
    for name in searched:
        if name not in folders:
            sys.stdout.write(f"{name:12} keeps no index here: nothing to build\n")


def _folder(given: Path | None) -> Path:
    if given is None:
        raise NoIndexFolderError(
            "`index_dir` is not set, so that training builds its indexes in memory each time; give "
            "a folder, here and to train.py: --index_dir indexes, or `index_dir: indexes` in the "
            "file"
        )
    return given


def _line(config: "Config", collection: "Documents", name: str, folder: Path, rebuild: bool) -> str:
    from retrievers.index_files import facts, indexes, remove, verify
    from rewriter.config.backends import open_retrievers
    from rewriter.peak_memory import forget_peak, peak

    if rebuild:
        remove(folder)
    before = indexes(folder)
    verify(folder)
    forget_peak()
    started = time.perf_counter()
    opened = open_retrievers(config, collection, [name])[name]
    seconds = time.perf_counter() - started
    found = facts(folder)
    more = ", ".join(_more(found.counts, opened.facts.get("overlap")))
    return ROW.format(
        name,
        "opened" if indexes(folder) == before else "built",
        "" if opened.size is None else f"{opened.size:,}",
        _bytes(found.size),
        f"{seconds:.1f} s",
        _bytes(peak()),
        f"{folder}{f' ({more})' if more else ''}",
    )


def _more(counts: dict[str, int], overlap: float | None) -> Iterator[str]:
    shown = {what.replace("_", " "): count for what, count in counts.items()}
    yield from (f"{count:,} {what}" for what, count in shown.items() if what != "documents")
    if overlap is not None:
        yield f"{overlap:.3f} overlap with exact search"


def _bytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.2f} GiB"
