"""A command ends with its worker, whatever ends that."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from rewriter.ablation.process import Stopped, last_words, run_bound
from tests.ablation_workers import until

ROOT = Path(__file__).parent.parent


BEATING = """
import sys, time
from pathlib import Path
while True:
    Path(sys.argv[1]).write_text(str(time.time()))
    time.sleep(0.05)
"""


WORKER = """
import sys
from pathlib import Path
from rewriter.ablation.process import run_bound
beat, log = sys.argv[1:3]
run_bound([sys.executable, "-c", sys.argv[3], beat], Path(log), lambda: False)
"""


def test_a_command_ends_with_its_worker(tmp_path: Path) -> None:
    beat, log = tmp_path / "beat", tmp_path / "logs" / "log"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(beat), str(log), BEATING], cwd=ROOT
    )
    until(beat.is_file)
    worker.kill()
    worker.wait()

    def still() -> bool:
        before = beat.stat().st_mtime_ns
        time.sleep(1.0)
        return beat.stat().st_mtime_ns == before

    until(still)


def test_exit_codes_and_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import sys; print('begun'); sys.stderr.write('error: no such model\\n'); sys.exit(2)"
    assert run_bound([sys.executable, "-c", code], log, lambda: False) == 2
    assert last_words(log) == "no such model"
    kill = "import os; print('last', flush=True); os.kill(os.getpid(), 9)"
    assert run_bound([sys.executable, "-c", kill], tmp_path / "other", lambda: False) == -9
    assert last_words(tmp_path / "other") == "last"
    assert last_words(tmp_path / "none") == ""
    said = log.stat().st_size
    assert run_bound([sys.executable, "-c", "import sys; sys.exit(128)"], log, lambda: False) == 128
    assert last_words(log, said) == ""  # what an earlier try said is not why this one failed
    log.write_text("error: no such key\n" + "torch.distributed says\n" * 60)
    assert last_words(log) == "no such key"


def test_a_signal_to_all_processes_ends_the_command_too(tmp_path: Path) -> None:
    """A batch system signals the process between as well: it must not leave the command behind."""
    beat = tmp_path / "beat"
    code = "import sys; from rewriter.ablation.process import main; sys.exit(main(sys.argv[1:]))"
    guard = subprocess.Popen(
        [sys.executable, "-c", code, sys.executable, "-c", BEATING, str(beat)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    )
    until(beat.is_file)
    guard.terminate()
    assert guard.wait(60) == 128 + signal.SIGTERM
    before = beat.stat().st_mtime_ns
    time.sleep(0.5)
    assert beat.stat().st_mtime_ns == before


def test_a_command_is_ended_on_request(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    try:
        run_bound([sys.executable, "-c", BEATING, str(beat)], tmp_path / "log", beat.is_file)
    except Stopped:
        before = beat.stat().st_mtime_ns
        time.sleep(0.5)
        assert beat.stat().st_mtime_ns == before
    else:
        raise AssertionError("it ended by itself")
