"""Claims: which worker does what, where several share one folder.

A claim is a file NAME.N that only one process can create (O_EXCL). Its owner touches it every few
seconds; a claim that nobody touches any more, or whose process is gone, is stale, and whoever
creates NAME.N+1 has taken it over. No claim is removed while its run is open, so that there is no
moment in which two could hold it; an owner that was only asleep sees the higher number and stops.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewriter.ablation.cores import computed_on

logger = logging.getLogger(__name__)

BEAT = 10.0  # seconds between two touches
STALE = 90.0  # seconds without one after which a claim is stale


class Claim:
    """A claim that this process holds. `lost` is set when another one took it over."""

    def __init__(self, path: Path, beat: float) -> None:
        self.path = path
        self.lost = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._touch, args=(beat,), daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Give it up: what is not finished can be claimed at once."""
        self._over.set()
        self._thread.join()
        if not self.lost.is_set():
            self.path.write_text(json.dumps({"released": True}), encoding="utf-8")

    def _touch(self, beat: float) -> None:
        name = self.path.name.rpartition(".")[0]
        while not self._over.wait(beat):
            try:
                newest, _ = _newest(self.path.parent, name)
                if newest != self.path:
                    self.lost.set()
                    return
                os.utime(self.path)
            except OSError as error:
                # A shared file system may be away for a moment; one that ends the beat for good
                # would hand the run to another worker while this one goes on.
                logger.warning("%s: cannot be touched (%s); trying again", self.path, error)


class Claims:
    """The claims of one state folder.

    Args:
        folder: where they are.
        beat, stale: seconds, see `BEAT` and `STALE`; the same for all workers.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        folder: Path,
        *,
        beat: float = BEAT,
        stale: float = STALE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._beat = beat
        self._stale = stale
        self._clock = clock
        self._seen: dict[Path, _Seen] = {}

    def claim(self, name: str, threads: int | None = None) -> Claim | None:
        """Claim a name; None if another process holds it or was faster.

        threads: on which the work is done, for `neighbours`; None: all cores of this process.
        """
        newest, number = _newest(self._folder, name)
        if newest is not None and not self._is_stale(newest):
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{name}.{number + 1}"
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(_me() | computed_on(threads)))
        return Claim(path, self._beat)

    def held(self, name: str) -> bool:
        """Whether some process holds a name."""
        newest, _ = _newest(self._folder, name)
        return newest is not None and not self._is_stale(newest)

    def lives(self, name: str) -> bool:
        """Whether the holder of a name was seen at work.

        Of a claim that was found and not seen to change yet, nobody can say: its owner may have
        been killed with its whole machine.
        """
        newest, _ = _newest(self._folder, name)
        if newest is None or self._is_stale(newest):
            return False
        return _is_here(_owner(newest)) or (newest in self._seen and self._seen[newest].touched)

    def neighbours(self) -> list[dict[str, Any]]:
        """What other processes of this machine that hold something wrote into their claims."""
        owners = [_owner(path) for path in self._folder.glob("*")]
        here = {one["pid"]: one for one in owners if _is_here(one) and not _is_gone(one)}
        return [one for pid, one in here.items() if pid != os.getpid()]

    def _is_stale(self, path: Path) -> bool:
        """By its owner's end where that can be seen from here, else by the time it is not touched.

        The time is measured by this process's own clock: those of two machines may differ.
        """
        owner = _owner(path)
        if owner.get("released"):
            return True
        if _is_here(owner):
            return _is_gone(owner)
        last = path.stat().st_mtime_ns
        before = self._seen.get(path)
        if before is None or before.last != last:
            self._seen[path] = _Seen(last, self._clock(), before is not None)
            return False
        return self._clock() - before.since > self._stale


class _Seen(NamedTuple):
    """A claim from elsewhere: its time, since when (our clock), and whether that changed once."""

    last: int
    since: float
    touched: bool


def _is_here(owner: Mapping[str, Any]) -> bool:
    """Whether its owner's process can be seen from here."""
    return bool(owner.get("where") == _where() and owner["started"] is not None)


def _is_gone(owner: Mapping[str, Any]) -> bool:
    """Whether an owner that can be seen from here is there no more."""
    return bool(_started(owner["pid"]) != owner["started"])


def _newest(folder: Path, name: str) -> tuple[Path | None, int]:
    """The claim with the highest number, and that number; 0 where there is none."""
    found = {}
    for path in folder.glob("*"):
        stem, _, number = path.name.rpartition(".")
        if stem == name and number.isdigit():
            found[int(number)] = path
    highest = max(found, default=0)
    return found.get(highest), highest


def _owner(path: Path) -> dict[str, Any]:
    """What the file says; empty where its owner was stopped before it wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _me() -> dict[str, Any]:
    pid = os.getpid()
    return {"where": _where(), "pid": pid, "started": _started(pid)}


def _where() -> str:
    """The machine since its start, and the space in which process ids mean something.

    Two machines may go by one name, such as localhost; no two starts have the same id.
    """
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
    except OSError:  # no Linux
        start = space = ""
    return f"{socket.gethostname()} {start} {space}"


def _started(pid: int) -> str | None:
    """When a process began, as its machine counts; None if it is gone, or there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]
