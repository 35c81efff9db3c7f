"""A directory that is there complete or not at all."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def write_once(directory: Path, fill: Callable[[Path], None]) -> None:
    """Have `fill` write the content of `directory`, unless something is in it already.

    `fill` writes into a hidden directory beside it, which is flushed to the disk and renamed. One
    that a killed process left behind is removed by the next call. Processes that call at once wait
    for the first; where the file system knows no locks all of them write, and one wins.

    Raises:
        Whatever `fill` raises; nothing is left behind then.
    """
    directory = Path(directory).absolute()
    if _filled(directory):
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _lock(directory) as alone:
        if alone:
            _remove_leftovers(directory)
        if not _filled(directory):
            _write(directory, fill)


def _write(directory: Path, fill: Callable[[Path], None]) -> None:
    unfinished = directory.parent / f"{_leftover_prefix(directory)}{uuid4().hex}"
    unfinished.mkdir()
    try:
        fill(unfinished)
        # The name must not appear before the content is on the disk, or a power cut empties it.
        for path in [*unfinished.rglob("*"), unfinished]:
            _flush(path)
        _move(unfinished, directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _move(unfinished: Path, directory: Path) -> None:
    if sys.platform == "win32" and directory.is_dir() and not _filled(directory):
        directory.rmdir()  # a rename does not replace an empty directory there
    try:
        os.rename(unfinished, directory)
    except OSError:
        if not _filled(directory):
            raise
        return  # without a lock another process may have been faster: its content stays
    _flush(directory.parent)


def _flush(path: Path) -> None:
    if sys.platform == "win32" and path.is_dir():
        return  # directories cannot be opened there
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _filled(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())


def _leftover_prefix(directory: Path) -> str:
    return f".{directory.name}.unfinished-"


def _remove_leftovers(directory: Path) -> None:
    for path in directory.parent.iterdir():
        if path.name.startswith(_leftover_prefix(directory)):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """Hold the directory's lock file; False where the file system knows no locks."""
    with (directory.parent / f".{directory.name}.lock").open("w") as file:
        yield _locked(file.fileno())


def _locked(handle: int) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # the system lets go of it when the process dies
    except OSError:
        return False
    return True
