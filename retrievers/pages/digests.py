"""Checksums of files, remembered so that a file is read again only after it was changed."""

import hashlib
import json
import logging
import time
from pathlib import Path

from retrievers.atomic import write_file

logger = logging.getLogger(__name__)

# A file may change again within one tick of its file system's clock, two seconds on some, and look
# the same: what is so young is not remembered.
YOUNG = 2 * 10**9  # nanoseconds

Known = tuple[int, int, str]  # size, time of the last change in nanoseconds, SHA-256 in hexadecimal


class FileDigests:
    """SHA-256 of files.

    A file counts as unchanged while its size and the time of its last change are.

    Args:
        place: JSON file where they are remembered; a damaged one is ignored, and written anew.
            None: nothing outlives this object.
    """

    def __init__(self, place: Path | None = None) -> None:
        self._place = place
        self._before = {} if place is None else _read(place)
        self._seen: dict[str, Known] = {}

    def of(self, file: Path) -> bytes:
        """The digest of a file, 32 bytes; it is read if it is new or was changed."""
        facts, name = file.stat(), str(file.absolute())
        size, changed = facts.st_size, facts.st_mtime_ns
        known = self._seen.get(name) or self._before.get(name)
        if known is None or known[:2] != (size, changed):
            with file.open("rb") as opened:
                known = (size, changed, hashlib.file_digest(opened, "sha256").hexdigest())
        self._seen[name] = known
        return bytes.fromhex(known[2])

    def keep(self) -> None:
        """Remember those that were asked for, and no others; where that fails, it is only told."""
        until = time.time_ns() - YOUNG
        old = {name: known for name, known in self._seen.items() if known[1] < until}
        if self._place is None or old == self._before:
            return
        try:
            write_file(self._place, json.dumps(old).encode())
        except OSError as error:
            logger.warning(
                "checksums of page images cannot be remembered, so that each opening reads every "
                "file: %s",
                error,
            )


def _read(place: Path) -> dict[str, Known]:
    try:
        found = json.loads(place.read_bytes())
        return {
            str(name): (int(size), int(changed), _checked(digest))
            for name, (size, changed, digest) in found.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        logger.warning("%s is no list of checksums, and is made anew: %s", place, error)
        return {}


def _checked(digest: str) -> str:
    if len(bytes.fromhex(digest)) != hashlib.sha256().digest_size:
        raise ValueError(f"{digest!r} is no SHA-256")
    return digest
