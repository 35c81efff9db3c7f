"""The manifest of an index: what the content depends on, facts of it, checksums of all there is."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FORMAT = 2  # 1 had no checksum of the manifest itself
MANIFEST = "manifest.json"
CHECKSUM = "checksum"
REBUILD = " (`rlqr index --config FILE --rebuild` does both)"


class IndexMismatch(ValueError):
    """The index there was built from something else; the message names every field that differs."""


class IndexDamaged(ValueError):
    """A file of the index is missing, cut short or changed, or the directory holds no index."""


class About(dict[str, Any]):
    """Facts of the manifest in `directory`; to ask for one that is not there is IndexDamaged."""

    def __init__(self, directory: Path, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self._directory = directory

    def __missing__(self, name: str) -> Any:
        """Say that the manifest lacks it."""
        raise damaged(self._directory, f"{MANIFEST} lacks {name!r} in `about`")


def fingerprint(parts: Mapping[str, Any]) -> str:
    """sha256 (64 hex digits) of `parts` as canonical JSON: the order of its keys is irrelevant."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(values: Mapping[str, Any]) -> bytes:
    """A file's content: `values` as a JSON object that holds its own checksum.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    plain = json.loads(json.dumps(values))  # tuples and keys as they will be read
    return json.dumps(plain | {CHECKSUM: fingerprint(plain)}, indent=1).encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """The values that `sealed` was given.

    Raises:
        ValueError: they are not those any more; the message goes on after the file's name.
    """
    try:
        values = json.loads(content.decode())
        if not isinstance(values, dict):
            raise ValueError("it is no object")
        known = values.pop(CHECKSUM, None)
        found = fingerprint(values)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON as it was written: {error}") from error
    if known is None:
        raise ValueError("lacks its checksum: an older version wrote it, or it is damaged")
    if known != found:
        raise ValueError("was changed: its checksum differs")
    return values


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an index: `format`, `kind`, `parts`, `about`, `files`.

    Raises:
        IndexDamaged: there is none, or it is not what `write_manifest` wrote.
    """
    path = directory / MANIFEST
    if not path.is_file():
        raise damaged(directory, f"it has no {MANIFEST}, so it is no index of ours")
    try:
        manifest = unsealed(path.read_bytes())
    except ValueError as error:
        raise damaged(directory, f"{MANIFEST} {error}") from error
    return manifest | {"about": About(directory, manifest["about"])}


def write_manifest(
    directory: Path, kind: str, parts: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """Describe the files that are in `directory`.

    Args:
        directory: of an index, complete but for its manifest.
        kind: the engine's family, such as "lexical".
        parts: what the content depends on.
        about: facts of the content.
    """
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "fingerprint": fingerprint(parts),
        "parts": parts,
        "about": about,
        "files": _describe(directory),
    }
    (directory / MANIFEST).write_bytes(sealed(manifest))


def refuse_other(
    directory: Path, manifest: Mapping[str, Any], kind: str, parts: Mapping[str, Any]
) -> None:
    """Compare a manifest with what is asked for.

    Raises:
        IndexMismatch: names every field that differs.
    """
    wanted = {"format": FORMAT, "kind": kind, "parts": parts}
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


def damaged(directory: Path, what: str) -> IndexDamaged:
    """The error of an index that cannot be read. what: is wrong with it."""
    return IndexDamaged(
        f"the index in {directory} cannot be read: {what}. If it is an index, delete the directory "
        f"to have it rebuilt{_by_command(directory)}; otherwise name another one."
    )


def sha256(path: Path) -> str:
    """Checksum of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, inner


def _by_command(directory: Path) -> str:
    """Names the command that rebuilds an index; not of one inside another, which it removes too."""
    inner = (directory.parent / MANIFEST).is_file()
    return REBUILD if (directory / MANIFEST).is_file() and not inner else ""


def _describe(directory: Path) -> dict[str, dict[str, Any]]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        path.relative_to(directory).as_posix(): {
            "size": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in files
    }
