"""A command that does not outlive its worker.

A worker that is killed can end nothing any more, and a training that went on would write into a
folder that another worker has taken over. So between the two stands this module as a process of its
own: it waits for the end of its standard input, which the worker's death closes, and then ends the
command with everything that it started.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

GRACE = 20.0  # seconds to end in peace: a launcher has to end its own processes
_LOOK = 0.2
_TAIL = 200  # lines: a launcher says much after the error of one of its processes


class Stopped(RuntimeError):
    """The command was ended because its worker has to stop."""


def run_bound(command: Sequence[str], log: Path, must_stop: Callable[[], bool]) -> int:
    """Run a command to its end.

    Args:
        command: program and arguments.
        log: what it says is added there.
        must_stop: asked several times a second.

    Returns:
        Its exit code, negative for a signal.

    Raises:
        Stopped: `must_stop` said so; the command has ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    guarded = [sys.executable, "-m", "rewriter.ablation.process", *command]
    with log.open("ab") as said:
        guard = subprocess.Popen(
            guarded, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
        )
    stopped = False
    try:
        while True:
            try:
                guard.wait(_LOOK)
                break
            except subprocess.TimeoutExpired:
                if must_stop():
                    stopped = True
                    break
    finally:
        if guard.stdin is not None:
            guard.stdin.close()
        code = guard.wait()
    if stopped:
        raise Stopped(" ".join(command))
    return code if code <= 128 else 128 - code


def last_words(log: Path, start: int = 0, lines: int = 1) -> str:
    """The last lines of a log, those of our own errors first.

    Args:
        log: the file.
        start: bytes of it that were there before, of an earlier try.
        lines: at most so many.
    """
    if not log.is_file():
        return ""
    text = log.read_bytes()[start:].decode("utf-8", errors="replace")
    said = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in said[-_TAIL:] if line.startswith("error: ")]
    return " ".join((errors or said)[-lines:])[:500]


def main(command: Sequence[str]) -> int:
    """Start the command; end it when standard input ends."""
    child = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, start_new_session=True)
    # A batch system signals all processes: this one must not be gone before its command is.
    signal.signal(signal.SIGTERM, lambda number, _: _signal(child, number))
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _signal(child, signal.SIGTERM)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGKILL)


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
