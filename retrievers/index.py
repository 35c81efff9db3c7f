"""Index directories: built once, never half-written, opened only by who asked for the same thing.

A directory holds `manifest.json`, memory-mapped `.npy` arrays, `.json` values and whatever file an
engine writes itself. The manifest names everything the content depends on. Nothing is pickled.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.atomic import write_once

FORMAT = 1
MANIFEST = "manifest.json"
# Checksums of larger files are compared by `Index.verify` only: reading gigabytes on every start
# would cost what memory-mapping saves.
CHECKED_BYTES = 32 * 2**20
REBUILD = " (`rlqr index --config FILE --rebuild` does both)"


class IndexMismatch(ValueError):
    """The index there was built from something else; the message names every field that differs."""


class IndexDamaged(ValueError):
    """A file of the index is missing, cut short or changed, or the directory holds no index."""


@dataclass(frozen=True)
class IndexWriter:
    """Where `build` puts its files: a directory that nobody reads yet.

    Attributes:
        path: for files that an engine writes itself, flat or in folders.
        about: small facts to keep in the manifest (JSON values): measured overlaps, and counts,
            which are what whole numbers are taken for (`index_files.facts`).
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
    """An index that was opened and fits what was asked for."""

    path: Path
    about: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]

    def array(self, name: str) -> NDArray[Any]:
        """The array written under `name`: read-only, memory-mapped."""
        mapped = np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return np.asarray(mapped)  # a plain view of the same pages: slicing a memmap is slower

    def read(self, name: str) -> NDArray[Any]:
        """The array written under `name`, in memory; a mapped one keeps its file open."""
        found: NDArray[Any] = np.load(self.path / f"{name}.npy", allow_pickle=False)
        return found

    def json(self, name: str) -> Any:
        """The JSON value written under `name`."""
        return json.loads((self.path / f"{name}.json").read_text(encoding="utf-8"))

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
                raise _damaged(self.path, f"{name} {state}")
            if (up_to is None or size <= up_to) and _sha256(path) != known["sha256"]:
                raise _damaged(self.path, f"{name} was changed: its checksum differs")


def fingerprint(parts: Mapping[str, Any]) -> str:
    """sha256 (64 hex digits) of `parts` as canonical JSON: the order of its keys is irrelevant."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


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
        _write_manifest(writer, kind, parts)

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
    _refuse_other(directory, manifest, {"format": FORMAT, "kind": kind, "parts": dict(parts)})
    found = Index(directory, manifest["about"], manifest["files"])
    found.verify(up_to=CHECKED_BYTES)
    return found


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an index: `format`, `kind`, `parts`, `about`, `files`.

    Raises:
        IndexDamaged: there is none, or it lacks one of these.
    """
    path = directory / MANIFEST
    if not path.is_file():
        raise _damaged(directory, f"it has no {MANIFEST}, so it is no index of ours")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(directory, f"{MANIFEST} is not JSON: {error}") from error
    expected = {"format", "kind", "parts", "about", "files"}
    if not isinstance(manifest, dict) or not expected <= manifest.keys():
        raise _damaged(directory, f"{MANIFEST} lacks one of {sorted(expected)}")
    return manifest


def _refuse_other(directory: Path, manifest: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    there = dict(_flat({name: manifest[name] for name in wanted}))
    asked = dict(_flat(json.loads(json.dumps(wanted))))
    differ = [
        f"  {name.removeprefix('parts.')}: there {there.get(name, '(absent)')!r}, "
        f"asked for {asked.get(name, '(absent)')!r}"
        for name in sorted(there.keys() | asked.keys())
        if there.get(name, "(absent)") != asked.get(name, "(absent)")
    ]
    if differ:
        raise IndexMismatch(
            f"the index in {directory} was built from something else:\n"
            + "\n".join(differ)
            + f"\nDelete the directory to have it rebuilt{_by_command(directory)}, or name another "
            "one."
        )


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, inner


def _damaged(directory: Path, what: str) -> IndexDamaged:
    return IndexDamaged(
        f"the index in {directory} cannot be read: {what}. If it is an index, delete the directory "
        f"to have it rebuilt{_by_command(directory)}; otherwise name another one."
    )


def _by_command(directory: Path) -> str:
    """Names the command that rebuilds an index; not of one inside another, which it removes too."""
    inner = (directory.parent / MANIFEST).is_file()
    return REBUILD if (directory / MANIFEST).is_file() and not inner else ""


def _write_manifest(writer: IndexWriter, kind: str, parts: Mapping[str, Any]) -> None:
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "fingerprint": fingerprint(parts),
        "parts": dict(parts),
        "about": writer.about,
        "files": _describe(writer.path),
    }
    (writer.path / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _describe(directory: Path) -> dict[str, dict[str, Any]]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        path.relative_to(directory).as_posix(): {
            "size": path.stat().st_size,
            "sha256": _sha256(path),
        }
        for path in files
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
