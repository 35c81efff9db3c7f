"""A part of an index that takes long to make: kept until the whole is written, or made again."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from retrievers.index import Index, IndexDamaged, IndexMismatch, IndexWriter, open_or_build


def open_or_remake(
    directory: Path,
    kind: str,
    parts: Mapping[str, Any],
    build: Callable[[IndexWriter], None],
) -> Index:
    """As `open_or_build`, but what is damaged or made of other parts is made again, not refused.

    All of it is read for its checksums.
    """
    try:
        found = open_or_build(directory, kind, parts, build)
        found.verify()
    except (IndexDamaged, IndexMismatch):
        shutil.rmtree(directory)
        found = open_or_build(directory, kind, parts, build)
    return found
