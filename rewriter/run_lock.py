"""One process at a time in a run's folder.

The lock is the operating system's: it ends with its process, however that ends, so that a killed
run can be resumed at once. Where a file system knows no locks, nobody is kept out.
"""

import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rewriter.resume import RunError

logger = logging.getLogger(__name__)

LOCK = ".lock"
PATIENCE = 30.0  # seconds that a resume waits: a run that was told to stop needs some to end
_LOOK = 0.2


@contextmanager
def alone_in(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes out of a folder until the `with` ends.

    Args:
        folder: there already.
        patience: seconds to wait for a process that is in it.

    Raises:
        RunError: another process is in it, and stays.
        OSError: the folder cannot be written.
    """
    path = folder / LOCK
    until = time.monotonic() + patience
    file = _locked(path)
    if file is None and patience:
        logger.info("%s: %s; waiting up to %.0f s for it to end", folder, _holder(path), patience)
    while file is None:
        if time.monotonic() >= until:
            raise RunError(
                f"{folder}: {_holder(path)}; two would write over each other: wait for its end, or "
                "choose another folder with --output"
            )
        time.sleep(_LOOK)
        file = _locked(path)
    with file:
        try:
            yield
        finally:
            if _lies_at(path, file):  # the folder may have been replaced or removed
                path.unlink()


def _locked(path: Path) -> TextIO | None:
    """The lock's file, locked until it is closed; None where another process has it."""
    file = path.open("a+", encoding="utf-8")
    try:
        # Whoever held it before has removed it, and the folder perhaps with it.
        if _lock(file.fileno()) and _lies_at(path, file):
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            return file
    except OSError:
        file.close()
        raise
    file.close()
    return None


def _lies_at(path: Path, file: TextIO) -> bool:
    """Whether the opened file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lock(handle: int) -> bool:
    """Whether no other process holds it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _holder(path: Path) -> str:
    said = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    return f"{said or 'another process'} is training into it"
