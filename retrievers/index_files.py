"""An index folder as a whole, whatever backend made it: what is in it, its checksums, its end.

An index may hold others in folders of its own, as the semantic one holds its graph.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrievers.index import Index
from retrievers.index_manifest import MANIFEST, read_manifest


class NoIndexError(ValueError):
    """A folder that was to be removed holds no index; the message says what to do."""


@dataclass(frozen=True)
class IndexFacts:
    """What an index folder holds.

    Attributes:
        size: bytes on the disk.
        counts: whole numbers from the manifests' `about`: name → count ("chunks": 5210).
    """

    size: int
    counts: dict[str, int]


def indexes(folder: Path) -> list[Path]:
    """The folder itself and those inside it that hold a manifest; none where nothing was built.

    Hidden ones are what a killed build left behind, or another process is building.
    """
    places = (path.parent for path in folder.rglob(MANIFEST)) if folder.is_dir() else ()
    return sorted(place for place in places if not _hidden(place.relative_to(folder)))


def facts(folder: Path) -> IndexFacts:
    """Size and counts of the index in `folder`.

    Raises:
        retrievers.index.IndexDamaged: a manifest cannot be read.
    """
    abouts = [read_manifest(place)["about"] for place in indexes(folder)]
    values = {name: value for about in abouts for name, value in about.items()}
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return IndexFacts(size, dict(_counts(values)))


def verify(folder: Path) -> None:
    """Compare every file of the indexes in `folder` with its checksum, however large it is.

    Raises:
        retrievers.index.IndexDamaged: one is missing or differs; names it.
    """
    for place in indexes(folder):
        manifest = read_manifest(place)
        Index(place, manifest["about"], manifest["files"]).verify()


def remove(folder: Path) -> None:
    """Remove the index in `folder`, if there is something, damaged or made from other documents.

    Raises:
        NoIndexError: the folder holds files, but no index.
    """
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MANIFEST).is_file()):
        raise NoIndexError(
            f"{folder} has no {MANIFEST}, so it may be no index, and is left alone; remove it "
            "yourself, or give another folder with --index_dir"
        )
    shutil.rmtree(folder)


def _hidden(place: Path) -> bool:
    return any(part.startswith(".") for part in place.parts)


def _counts(values: dict[str, object]) -> Iterator[tuple[str, int]]:
    for name, value in values.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield name, value
