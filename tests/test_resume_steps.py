"""A run that was stopped goes on as if it had not been, at whichever step."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter.resume import RunError
from rewriter.run_directory import RunDirectory
from tests import interrupted_runs, tiny
from tests.interrupted_runs import SECTIONS, _assert_same_run, _crash, _logged, _resume, _same

# Fixtures; the last one is used by itself.
whole, folder = interrupted_runs.whole, interrupted_runs.folder
_alive = interrupted_runs._alive


@pytest.mark.parametrize("step", [2, 4, 5], ids=["in epoch 1", "at its end", "in epoch 2"])
def test_a_resumed_run_equals_one_without_a_break(
    folder: Path, whole: RunDirectory, step: int
) -> None:
    run = _crash(folder, step)
    assert max(row["step"] for row in tiny.lines(run.evaluations)) == step - 1
    _resume(folder)
    _assert_same_run(run, whole)


def test_a_crash_before_the_first_checkpoint_starts_over(folder: Path, whole: RunDirectory) -> None:
    run = _crash(folder, 1)
    assert not list(run.checkpoints.glob("checkpoint-*"))
    _resume(folder)
    _assert_same_run(run, whole)


def test_saved_at_the_end_of_an_epoch_and_resumed(folder: Path) -> None:
    """Six prompts: saved at the end of epoch 1 (step 3), resumed to 6."""
    evaluation = {"every": 3}
    run = tiny.train_tiny(
        folder, **(SECTIONS | {"trainer": {"max_steps": 3}, "evaluation": evaluation})
    )
    assert [path.name for path in run.checkpoints.glob("checkpoint-*")] == ["checkpoint-3"]
    _resume(folder, evaluation=evaluation)
    assert tiny.read(run.checkpoints / "checkpoint-6" / "trainer_state.json")["global_step"] == 6
    assert not _same(run.checkpoints / "checkpoint-3", run.checkpoints / "checkpoint-6")
    assert [row["step"] for row in tiny.steps(run)] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in tiny.lines(run.evaluations)] == [0, 3, 6]


def test_resumed_between_two_evaluations_it_waits_for_the_next(folder: Path) -> None:
    """One more could become the best, and would count against patience."""
    sections: dict[str, Any] = {
        "evaluation": {"every": 2},
        "trainer": {"max_steps": 6, "save_steps": 3},
    }
    run = _crash(folder, 5, **sections)
    assert [path.name for path in run.checkpoints.glob("checkpoint-*")] == ["checkpoint-3"]
    _resume(folder, **sections)
    assert [row["step"] for row in tiny.lines(run.evaluations)] == [0, 2, 4, 6]


@pytest.mark.parametrize("damage", ["no state", "half a state", "state of another step"])
def test_a_half_written_checkpoint_is_not_used(
    folder: Path, whole: RunDirectory, damage: str
) -> None:
    run = _crash(folder, 5)
    state = run.checkpoints / "checkpoint-4" / "trainer_state.json"
    if damage == "no state":
        state.unlink()
    elif damage == "half a state":
        state.write_bytes(state.read_bytes()[:100])
    else:
        state.write_text(json.dumps({"global_step": 3}))
    # And a log whose last line a kill cut short.
    with run.completions(0).open("a") as file:
        file.write('{"step": 4, "query_id": "q')
    _resume(folder)
    _assert_same_run(run, whole)


def test_a_save_amid_a_buffer_of_rollouts_is_not_used(folder: Path) -> None:
    """A buffer lasts two steps; the run ends, and saves, in the middle of the third."""
    trainer = {"max_steps": 5, "num_iterations": 2, "lr_scheduler_type": "constant"}
    sections = {"evaluation": {"every": 2}, "reward": {"kind": "ndcg"}}
    run = tiny.train_tiny(folder, **sections, trainer=trainer)
    assert (run.checkpoints / "checkpoint-5").exists()
    tiny.train_tiny(folder, **sections, trainer={**trainer, "max_steps": 8}, resume=True)
    straight = tiny.train_tiny(
        folder, **sections, trainer={**trainer, "max_steps": 8}, output=str(folder / "straight")
    )
    assert _logged(run.completions(0)) == _logged(straight.completions(0))
    assert _same(run.checkpoints / "checkpoint-8", straight.checkpoints / "checkpoint-8")


def test_a_finished_run_resumed_makes_no_step_more(folder: Path) -> None:
    """Four steps end within an epoch, where the trainer alone would go on to a fifth."""
    four = {"trainer": {"max_steps": 4}}
    run = tiny.train_tiny(folder, **(SECTIONS | four))
    before = run.metrics.read_bytes(), tiny.read(run.result)
    run.result.unlink()
    _resume(folder, **four)
    assert (run.metrics.read_bytes(), tiny.read(run.result)) == before
    assert not (run.checkpoints / "checkpoint-5").exists()
    shutil.rmtree(run.adapters)
    with pytest.raises(RunError, match=r"adapter_model.safetensors: the best adapter is not there"):
        _resume(folder, **four)
    run.evaluations.unlink()
    with pytest.raises(RunError, match=r"evaluations.jsonl holds no evaluation"):
        _resume(folder, **four)


@pytest.mark.slow
def test_a_killed_process_is_resumed_from_the_command_line(
    folder: Path, whole: RunDirectory
) -> None:
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(tiny.settings(folder, **SECTIONS)))
    command = ["python", "train.py", "--config", config]
    killed = tiny.launch(command, RLQR_TEST_KILL_IN="5")
    assert killed.returncode == -9
    run = RunDirectory(folder / "run")
    refused = tiny.launch(command)
    assert refused.returncode == 2
    assert f"{run.path} holds a run already; add --resume" in refused.stderr
    resumed = tiny.launch([*command, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    _assert_same_run(run, whole)
    refused = tiny.launch([*command, "--overwrite", folder])
    assert refused.returncode == 2
    assert "is not the output of this run" in refused.stderr
    assert run.result.is_file()
