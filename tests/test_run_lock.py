"""Two processes never write into one run."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rewriter import run_lock
from rewriter.resume import RunError
from rewriter.run_lock import LOCK, alone_in

HOLD = (
    "import sys, time; from pathlib import Path; from rewriter.run_lock import alone_in\n"
    "with alone_in(Path(sys.argv[1])): print('in', flush=True); time.sleep(60)"
)


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that is in the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        yield process
        process.kill()


def test_another_process_is_kept_out_until_it_is_killed(
    tmp_path: Path, other: "subprocess.Popen[str]"
) -> None:
    with pytest.raises(RunError) as refused, alone_in(tmp_path):
        pass
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}: process {other.pid} on ")
    assert "is training into it" in said
    assert "\n" not in said
    other.kill()
    other.wait()
    with alone_in(tmp_path):
        assert (tmp_path / LOCK).read_text().startswith(f"process {os.getpid()} on ")
    assert not (tmp_path / LOCK).exists()


def test_one_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    held = ExitStack()
    held.enter_context(alone_in(tmp_path))
    threading.Timer(0.3, held.close).start()
    begun = time.monotonic()
    with alone_in(tmp_path, patience=20):
        assert 0.25 < time.monotonic() - begun < 15


def test_a_folder_that_was_replaced_meanwhile_is_locked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked is the file that was opened; what counts is the one that lies there now."""
    path, lock = tmp_path / LOCK, run_lock._lock
    calls: list[int] = []

    def replaced(handle: int) -> bool:
        calls.append(handle)
        if len(calls) == 1:
            path.rename(tmp_path / "old")
            path.touch()
        return lock(handle)

    monkeypatch.setattr(run_lock, "_lock", replaced)
    with alone_in(tmp_path, patience=20):
        assert len(calls) == 2
        monkeypatch.undo()
        with pytest.raises(RunError), alone_in(tmp_path):
            pass


def test_only_its_own_lock_is_removed(tmp_path: Path) -> None:
    """The folder was set aside, and another process is in the one that has its name now."""
    folder = tmp_path / "run"
    folder.mkdir()
    with ExitStack() as held:
        with alone_in(folder):
            folder.rename(tmp_path / "old")
            folder.mkdir()
            held.enter_context(alone_in(folder))
        with pytest.raises(RunError), alone_in(folder):
            pass


def test_a_file_system_without_locks_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with alone_in(tmp_path), alone_in(tmp_path):
        pass
