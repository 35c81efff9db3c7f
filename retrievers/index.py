"""Index directories: built once, never half-written, opened only by who asked for the same thing.

A directory holds `manifest.json`, memory-mapped `.npy` arrays, `.json` values and whatever file an
engine writes itself. The manifest (`index_manifest`) names everything the content depends on.
Nothing is pickled.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.atomic import write_once
from retrievers.index_manifest import (
    MANIFEST,
    REBUILD,
    IndexDamaged,
    IndexMismatch,
    damaged,
    fingerprint,
    read_manifest,
    refuse_other,
    sha256,
    write_manifest,
)

__all__ = [
    "REBUILD",
    "Index",
    "IndexDamaged",
    "IndexMismatch",
    "IndexWriter",
    "fingerprint",
    "open_index",
    "open_or_build",
]

# Checksums of larger files are compared by `Index.verify` only: reading gigabytes on every start
# would cost what memory-mapping saves.
CHECKED_BYTES = 32 * 2**20
# What numpy raises where a file is missing, is no array, or has a header that makes no sense. Other
# errors of the system, such as too many open files, say nothing about the index.
NO_ARRAY = (FileNotFoundError, ValueError, TypeError, OverflowError, TokenError)


@dataclass(frozen=True)
class IndexWriter:
    """Where `build` puts its files: a directory that nobody reads yet.

    Attributes:
        path: for files that an engine writes itself, flat or in folders.
        about: small facts to keep in the manifest (JSON values); whole numbers are taken for counts
            (`index_files.facts`).
    """

    path: Path
    about: dict[str, Any] = field(default_factory=dict)

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Write an array of numbers of any shape; arrays of objects are refused (ValueError)."""
        np.save(self.path / f"{name}.npy", values, allow_pickle=False)

    def json(self, name: str, value: object) -> None:
        """Write a JSON value, such as a vocabulary."""
        (self.path / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")


@dataclass(frozen=True)
class Index:
    """An index that was opened and fits what was asked for.

    What is read of it raises IndexDamaged where a file is missing or is not what was written.
    """

    path: Path
    about: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]

    def array(self, name: str) -> NDArray[Any]:
        """The array written under `name`: read-only, memory-mapped."""
        path = self.file(f"{name}.npy")
        try:
            mapped = np.lib.format.open_memmap(path, mode="r")
        except NO_ARRAY as error:
            raise damaged(self.path, f"{path.name} is no array of numbers: {error}") from error
        described, size = mapped.offset + mapped.nbytes, path.stat().st_size
        if described != size:
            raise damaged(self.path, f"{path.name} has {size} bytes, its header says {described}")
        return np.asarray(mapped)  # a plain view of the same pages: slicing a memmap is slower

    def read(self, name: str) -> NDArray[Any]:
        """The array written under `name`, in memory; a mapped one keeps its file open."""
        return np.array(self.array(name))

    def json(self, name: str) -> Any:
        """The JSON value written under `name`."""
        path = self.file(f"{name}.json")
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError, RecursionError) as error:
            raise damaged(self.path, f"{path.name} is no JSON value: {error}") from error

    def file(self, name: str) -> Path:
        """Where a file of the index is, such as one that an engine wrote itself."""
        if name not in self.files:
            raise damaged(self.path, f"{MANIFEST} does not know {name}")
        return self.path / name

    def verify(self, up_to: int | None = None) -> None:
        """Compare the size of every file, and of those of at most `up_to` bytes the checksum.

        Args:
            up_to: None for the checksums of all.

        Raises:
            IndexDamaged: a file is missing, cut short or changed.
        """
        for name, known in self.files.items():
            path = self.path / name
            size = path.stat().st_size if path.is_file() else None
            if size is None or size != known["size"]:
                state = "is missing" if size is None else f"has {size} bytes, not {known['size']}"
                raise damaged(self.path, f"{name} {state}")
            if (up_to is None or size <= up_to) and sha256(path) != known["sha256"]:
                raise damaged(self.path, f"{name} was changed: its checksum differs")


def open_or_build(
    directory: Path,
    kind: str,
    parts: Mapping[str, Any],
    build: Callable[[IndexWriter], None],
) -> Index:
    """Open the index in `directory`; build it first where there is none.

    Processes that ask at once wait for the one that builds. A build that is killed leaves a hidden
    directory beside `directory`; it is never read, and the next build removes it.

    Args:
        directory: missing or empty to have it built.
        kind: the engine's family, such as "lexical".
        parts: JSON values the content depends on: hash of the documents, settings, versions.
        build: writes the content.

    Raises:
        IndexMismatch: an index is there, built from other parts.
        IndexDamaged: what is there cannot be read.
    """

    def fill(unfinished: Path) -> None:
        writer = IndexWriter(unfinished)
        build(writer)
        write_manifest(unfinished, kind, parts, writer.about)

    write_once(directory, fill)
    return open_index(directory, kind, parts)


def open_index(directory: Path, kind: str, parts: Mapping[str, Any]) -> Index:
    """Open an index that exists.

    Sizes of all files and checksums of those up to `CHECKED_BYTES` are compared.

    Raises:
        IndexMismatch: it was built from other parts.
        IndexDamaged: there is none, or a file is missing, cut short or changed.
    """
    directory = Path(directory).absolute()
    manifest = read_manifest(directory)
    refuse_other(directory, manifest, kind, parts)
    found = Index(directory, manifest["about"], manifest["files"])
    found.verify(up_to=CHECKED_BYTES)
    return found
