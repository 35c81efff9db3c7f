"""Workers of one machine that compute on the same cores are told so, with what to do."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from rewriter.ablation.claims import Claim, Claims, _me, _started
from rewriter.ablation.cores import computed_on, crowded
from rewriter.ablation.items import Item
from rewriter.ablation.state import Outcome, State
from rewriter.ablation.worker import work
from tests import ablation_workers


def _on(*cores: int, threads: int) -> dict[str, Any]:
    return {"cores": list(cores), "threads": threads}


def test_more_threads_than_cores() -> None:
    own = _on(0, 1, threads=2)
    assert crowded(own, []) is None
    advice = crowded(own, [_on(0, 1, threads=2)])
    assert advice is not None
    assert advice.startswith("2 workers compute on the same 2 cores of this machine with 4 threads")
    assert "(taskset -c 0 rlqr ablate …), or fewer threads (--threads 1)" in advice
    assert crowded(_on(0, 1, threads=1), [_on(0, 1, threads=1)]) is None
    assert crowded(_on(0, 1, threads=1), [_on(0, 1, threads=2)]) is not None
    assert crowded(own, [_on(2, 3, threads=2)]) is None  # as taskset leaves them
    assert crowded(own, [_on(1, 2, threads=2)]) is not None
    four = [_on(*range(8), threads=8)] * 3
    assert "--threads 2)" in str(crowded(_on(*range(8), threads=8), four))


def test_what_a_process_computes_on() -> None:
    mine = computed_on(None)
    assert mine["threads"] == len(mine["cores"]) >= 1
    assert computed_on(3) == {"cores": mine["cores"], "threads": 3}


def _neighbour(folder: Path, name: str, **said: Any) -> None:
    """A claim of the process that started this one."""
    folder.mkdir(parents=True, exist_ok=True)
    parent = os.getppid()
    owner = _me() | computed_on(None) | {"pid": parent, "started": _started(parent)}
    (folder / name).write_text(json.dumps(owner | said))


@pytest.mark.skipif(_started(os.getpid()) is None, reason="no /proc")
def test_neighbours_are_other_living_processes_of_this_machine(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    own = claims.claim("own", 1)
    assert own is not None
    assert json.loads(own.path.read_text())["threads"] == 1
    _neighbour(tmp_path, "gone.1", started="another process had its number")
    _neighbour(tmp_path, "elsewhere.1", where="another machine")
    (tmp_path / "released.1").write_text(json.dumps({"released": True}))
    (tmp_path / "begun.1").touch()
    assert claims.neighbours() == []
    _neighbour(tmp_path, "theirs.1")
    _neighbour(tmp_path, "lost.1")
    assert [one["pid"] for one in claims.neighbours()] == [os.getppid()]
    own.release()


@pytest.mark.skipif(_started(os.getpid()) is None, reason="no /proc")
def test_a_worker_says_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("rewriter"), "propagate", True)

    def do(item: Item, claim: Claim) -> Outcome:
        return Outcome("done", item.evaluation)

    work(ablation_workers.items(tmp_path, 2), State(tmp_path / "alone"), do)
    assert not caplog.records
    _neighbour(tmp_path / "shared" / "claims", "theirs.1")
    work(ablation_workers.items(tmp_path, 2), State(tmp_path / "shared"), do)
    assert ["taskset -c" in record.message for record in caplog.records] == [True]
