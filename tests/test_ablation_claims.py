"""Several workers over one folder: nothing is done twice at a time, and nothing is left undone."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from retrievers.identity import MissingFileError
from rewriter.ablation.claims import Claim, Claims
from rewriter.ablation.items import Item
from rewriter.ablation.state import Outcome, State
from rewriter.ablation.worker import work
from tests import ablation_workers
from tests.ablation_workers import until

ROOT = Path(__file__).parent.parent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _elsewhere(folder: Path, name: str = "a.1") -> Path:
    """A claim of a process on another machine."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"where": "another machine", "pid": 1, "started": "5"}))
    return path


def test_one_holds_it_until_it_is_released(tmp_path: Path) -> None:
    ours, theirs = Claims(tmp_path), Claims(tmp_path)
    claim = ours.claim("a")
    assert claim is not None
    assert (theirs.claim("a"), theirs.held("a"), theirs.held("b")) == (None, True, False)
    other = theirs.claim("b")
    assert other is not None
    other.release()
    claim.release()
    again = theirs.claim("a")
    assert again is not None
    assert again.path.name == "a.2"
    again.release()


def test_a_name_that_begins_another_is_its_own(tmp_path: Path) -> None:
    claim = Claims(tmp_path).claim("lexical.1f")
    other = Claims(tmp_path).claim("lexical")
    assert claim is not None
    assert other is not None
    claim.release()
    other.release()


def test_a_claim_from_elsewhere_is_stale_by_our_own_clock(tmp_path: Path) -> None:
    path = _elsewhere(tmp_path)
    os.utime(path, (0, 0))  # their clock may be decades off
    clock = Clock()
    claims = Claims(tmp_path, stale=90.0, clock=clock)
    assert claims.claim("a") is None
    clock.now = 89.0
    assert claims.claim("a") is None
    os.utime(path, (10, 10))  # it lives
    clock.now = 95.0
    assert claims.claim("a") is None
    clock.now = 184.0
    assert claims.claim("a") is None
    clock.now = 186.0
    taken = claims.claim("a")
    assert taken is not None
    taken.release()


def test_a_claim_of_an_owner_killed_before_it_wrote_is_stale_in_time(tmp_path: Path) -> None:
    (tmp_path / "a.1").touch()
    clock = Clock()
    claims = Claims(tmp_path, stale=90.0, clock=clock)
    assert claims.claim("a") is None
    clock.now = 91.0
    taken = claims.claim("a")
    assert taken is not None
    taken.release()


def test_a_machine_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    """Whether its processes live cannot be seen from here, whatever it is called."""
    start = Path("/proc/sys/kernel/random/boot_id")
    if not start.is_file():
        pytest.skip("no /proc")
    claim = Claims(tmp_path).claim("a")
    assert claim is not None
    said = json.loads(claim.path.read_text())
    claim.release()
    said |= {"where": said["where"].replace(start.read_text().strip(), "5"), "pid": 1 << 30}
    (tmp_path / "a.2").write_text(json.dumps(said))
    assert Claims(tmp_path).claim("a") is None


def test_a_process_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from rewriter.ablation.claims import Claims\n"
    code += "import os; Claims(Path(sys.argv[1])).claim('a'); os._exit(1)"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=False)
    assert (tmp_path / "a.1").is_file()
    taken = Claims(tmp_path).claim("a")
    assert taken is not None
    taken.release()


def test_an_owner_that_slept_notices_that_it_was_taken_over(tmp_path: Path) -> None:
    claim = Claims(tmp_path, beat=0.02).claim("a")
    assert claim is not None
    assert not claim.lost.wait(0.1)
    _elsewhere(tmp_path, "a.2")
    assert claim.lost.wait(10)
    claim.release()
    assert "another machine" in (tmp_path / "a.2").read_text()  # theirs stays theirs
    assert "released" not in (tmp_path / "a.1").read_text()


def test_a_file_system_that_is_away_for_a_moment_ends_no_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Claims(tmp_path, beat=0.02).claim("a")
    assert claim is not None
    tried: list[Path] = []

    def away(path: Path) -> None:
        tried.append(path)
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", away)
        until(lambda: len(tried) > 1)
    os.utime(claim.path, (0, 0))
    until(lambda: claim.path.stat().st_mtime > 1)  # it beats again
    assert not claim.lost.is_set()
    claim.release()


def test_several_workers_forget_the_same_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (item,) = ablation_workers.items(tmp_path, 1)
    failed = Outcome("failed", item.evaluation)
    monkeypatch.setattr(State, "outcome", lambda *_: failed)  # read before the other one removed it
    State(tmp_path).forget_failures([item])


def test_a_file_that_is_missing_fails_one_run(tmp_path: Path) -> None:
    missing, other = ablation_workers.items(tmp_path, 2)

    def do(item: Item, claim: Claim) -> Outcome:
        if item is missing:
            raise MissingFileError("corpus.jsonl is no file")
        return Outcome("done", item.evaluation)

    state = State(tmp_path)
    work([missing, other], state, do)
    ended = [state.outcome(item) for item in (missing, other)]
    assert [found and (found.status, found.error) for found in ended] == [
        ("failed", "corpus.jsonl is no file"),
        ("done", None),
    ]


def test_what_a_machine_held_that_is_gone_is_done_without_waiting_for_the_living(
    tmp_path: Path,
) -> None:
    """A claim from elsewhere may be anybody's at first sight: with --no_wait too it is watched."""
    dead, other = ablation_workers.items(tmp_path, 2)
    claims = tmp_path / "claims"
    _elsewhere(claims, f"{dead.name}.1")
    alive = Claims(claims, beat=0.02).claim(other.name)
    assert alive is not None
    alive_elsewhere = json.loads(alive.path.read_text()) | {"where": "a machine that lives"}
    alive.path.write_text(json.dumps(alive_elsewhere))
    done = []

    def do(item: Item, claim: Claim) -> Outcome:
        done.append(item.name)
        return Outcome("done", item.evaluation)

    state = State(tmp_path, stale=1.0)
    work([dead, other], state, do, wait=False, poll=0.02)
    assert done == [dead.name]
    assert (state.claims.held(other.name), state.claims.lives(other.name)) == (True, True)
    assert not state.claims.lives("nothing")
    alive.release()
    assert not state.claims.lives(other.name)


def test_what_is_over_is_not_claimed(tmp_path: Path) -> None:
    state = State(tmp_path)
    one, other = ablation_workers.items(tmp_path, 2)
    state.end(one, Outcome("done", one.evaluation))
    assert state.claim(one) is None
    state.end(other, Outcome("done", "of another grid"))
    claim = state.claim(other)
    assert claim is not None
    claim.release()


def test_three_workers_one_of_them_killed(tmp_path: Path) -> None:
    def start(number: int, seconds: float) -> "subprocess.Popen[bytes]":
        words = [tmp_path, number, seconds]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.ablation_workers", *map(str, words)], cwd=ROOT
        )

    def lines() -> list[list[str]]:
        log = tmp_path / "log"
        return [line.split() for line in log.read_text().splitlines()] if log.is_file() else []

    killed = start(0, 300.0)  # it will not end what it begins
    until(lambda: bool(lines()))
    workers = [start(1, 0.2), start(2, 0.2)]
    until(lambda: len(lines()) > 3)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert [worker.wait(120) for worker in workers] == [0, 0]
    begun = Counter(name for what, name, _ in lines() if what == "begin")
    ended = Counter(name for what, name, _ in lines() if what == "end")
    names = [item.name for item in ablation_workers.items(tmp_path)]
    lost = lines()[0][1]
    assert ended == dict.fromkeys(names, 1)
    assert begun == dict.fromkeys(names, 1) | {lost: 2}
    state = State(tmp_path / "state")
    assert all(state.outcome(item) is not None for item in ablation_workers.items(tmp_path))
