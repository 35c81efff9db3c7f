"""A directory that is there complete or not at all, and a file that is the old one or the new."""

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
        NotADirectoryError: a file is in its place; said before anything is made.
        Whatever `fill` raises; nothing is left behind then.
    """
    directory = Path(directory).absolute()
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(f"{directory} is a file; remove it, or name another folder")
    if _filled(directory):
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _lock(directory) as alone:
        if alone:
            _remove_leftovers(directory)
        if not _filled(directory):
            _write(directory, fill)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or put it in the place of another: a reader finds one of them, and all of it.

    The content goes into a hidden file beside it, which is flushed to the disk and renamed; nothing
    is left behind where that fails. A link keeps pointing to what it points to, and a device or
    pipe is written to as it is.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.parent / f"{_leftover_prefix(path)}{uuid4().hex}"
    try:
        unfinished.write_bytes(content)
        _flush(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    _flush(path.parent)


def _write(directory: Path, fill: Callable[[Path], None]) -> None:
    unfinished = directory.parent / f"{_leftover_prefix(directory)}{uuid4().hex}"
    unfinished.mkdir()
    try:
        fill(unfinished)
        # The name must not appear before the content is on the disk, or a power cut empties it.
        for path in [*unfinished.rglob("*"), unfinished]:
            _flush(path)
        _move(unfinished, directory)
    except OSError:
        # Without a lock another process may have been faster, and have removed what both were
        # making it of: its content stays.
        if not _filled(directory):
            raise
        return
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _flush(directory.parent)


def _move(unfinished: Path, directory: Path) -> None:
    if sys.platform == "win32" and directory.is_dir() and not _filled(directory):
        directory.rmdir()  # a rename does not replace an empty directory there
    os.rename(unfinished, directory)


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
