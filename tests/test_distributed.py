"""Two processes on one machine, joined by gloo."""

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter.config import EvaluationSettings
from rewriter.records import read_records
from rewriter.run_directory import RunDirectory
from tests import tiny

pytestmark = pytest.mark.slow
TORCHRUN = ["torchrun", "--nproc_per_node", "2", "--master_port", "0", "--rdzv_backend", "c10d"]


def _launch(folder: Path, *arguments: str, **sections: Any) -> tuple[Any, RunDirectory]:
    """Two queries a rank and step: a group of four spans both."""
    collection = folder / "collection"
    if not collection.exists():
        tiny.save_collection(collection, train=2, validation=range(2, 7), test=(7, 8, 9))
    trainer = {"per_device_train_batch_size": 2, "max_steps": 3} | sections.pop("trainer", {})
    values = tiny.settings(folder, trainer=trainer, **sections)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    done = tiny.launch([*TORCHRUN, "train.py", "--config", path, *arguments])
    return done, RunDirectory(values["output"])


def test_each_query_is_evaluated_once_and_groups_span_ranks(tmp_path: Path) -> None:
    done, run = _launch(tmp_path, evaluation={"every": 1, "batch_size": 2})
    assert done.returncode == 0, done.stderr
    assert [(row["step"], row["n"]) for row in tiny.lines(run.evaluations)] == [
        (step, 5) for step in range(4)
    ]
    counted = Counter((record.system, record.query_id) for record in read_records(run.records))
    assert set(counted.values()) == {1}
    systems = [*EvaluationSettings().systems, "trained"]
    assert set(counted) == {(system, f"q{n}") for system in systems for n in (7, 8, 9)}
    logs = [tiny.lines(run.completions(rank)) for rank in (0, 1)]
    for step in (1, 2, 3):
        queries = [[row["query_id"] for row in log if row["step"] == step] for log in logs]
        assert queries[0] == queries[1]
        assert len(queries[0]) == 2
    # One table, and one line a step.
    assert done.stderr.count("lexical, 3 held-out queries") == 1
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3]
    # And it goes on with two processes.
    sections = {"evaluation": {"every": 1, "batch_size": 2}, "trainer": {"max_steps": 5}}
    done, _ = _launch(tmp_path, "--resume", **sections)
    assert done.returncode == 0, done.stderr
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3, 4, 5]
    for rank in (0, 1):
        logged = Counter(row["step"] for row in tiny.lines(run.completions(rank)))
        assert logged == dict.fromkeys(range(1, 6), 2)


def test_a_reward_that_raises_on_one_rank_ends_both(tmp_path: Path) -> None:
    done, _ = _launch(tmp_path, reward={"function": "tests.own_rewards:raises_on_rank_1"})
    ended = time.time()
    assert done.returncode != 0
    raised = re.search(r"ZeroDivisionError: only on rank 1 at ([\d.]+)", done.stderr)
    assert raised, done.stderr
    assert ended - float(raised[1]) < 60
    assert "raise ZeroDivisionError(f" in done.stderr  # the traceback's own line
