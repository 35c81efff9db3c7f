"""A run that was stopped goes on as if it had not been."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from rewriter.resume import RunError
from rewriter.run_directory import RunDirectory
from rewriter.run_lock import LOCK, alone_in
from tests import own_rewards, tiny

# Six prompts, two a step: an epoch is three steps.
SECTIONS: dict[str, Any] = {
    "reward": {"function": "tests.own_rewards:dies"},
    "evaluation": {"every": 1},
    "trainer": {"max_steps": 6},
}
# What depends on the clock, or on a cache that starts empty.
OF_THE_MOMENT = ("time", "step_time", "runtime", "per_second", "seconds", "cache_hit_rate")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Six steps without a break."""
    finished: RunDirectory = tiny.train_tiny(tmp_path_factory.mktemp("whole"), **SECTIONS)
    return finished


@pytest.fixture
def folder(whole: RunDirectory, tmp_path: Path) -> Path:
    """The same policy and data elsewhere."""
    return _like(whole, tmp_path)


@pytest.fixture(autouse=True)
def _alive() -> Iterator[None]:
    yield
    own_rewards.die_in = None


def _like(whole: RunDirectory, folder: Path) -> Path:
    for part in ("policy", "collection"):
        shutil.copytree(whole.path.parent / part, folder / part, dirs_exist_ok=True)
    return folder


def _crash(folder: Path, step: int, **sections: Any) -> RunDirectory:
    own_rewards.die_in = step
    with pytest.raises(own_rewards.Crash):
        tiny.train_tiny(folder, **(SECTIONS | sections))
    own_rewards.die_in = None
    return RunDirectory(folder / "run")


def _resume(folder: Path, **sections: Any) -> RunDirectory:
    finished: RunDirectory = tiny.train_tiny(folder, resume=True, **(SECTIONS | sections))
    return finished


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "adapter_model.safetensors")


def _same(one: Path, other: Path) -> bool:
    left, right = _weights(one), _weights(other)
    assert left.keys() == right.keys()
    return all(torch.equal(left[name], right[name]) for name in left)


def _weights_differ(run: RunDirectory, other: RunDirectory) -> bool:
    return not _same(run.checkpoints / "checkpoint-6", other.checkpoints / "checkpoint-6")


def _logged(path: Path) -> list[dict[str, Any]]:
    rows = [row for row in tiny.lines(path) if "train_runtime" not in row]
    return [
        {key: value for key, value in row.items() if not key.endswith(OF_THE_MOMENT)}
        for row in rows
    ]


def _assert_same_run(run: RunDirectory, whole: RunDirectory) -> None:
    assert tiny.read(run.checkpoints / "checkpoint-6" / "trainer_state.json")["global_step"] == 6
    for part in ("checkpoints/checkpoint-6", "best"):
        assert _same(run.path / part, whole.path / part)
    assert tiny.read(run.result) == tiny.read(whole.result)
    for log in ("metrics.jsonl", "evaluations.jsonl", "completions.jsonl"):
        assert _logged(run.path / log) == _logged(whole.path / log)


@pytest.mark.parametrize("step", [2, 4, 5], ids=["in epoch 1", "at its end", "in epoch 2"])
def test_a_resumed_run_equals_one_without_a_break(
    folder: Path, whole: RunDirectory, step: int
) -> None:
    run = _crash(folder, step)
    assert max(row["step"] for row in tiny.lines(run.evaluations)) == step - 1
    _resume(folder)
    _assert_same_run(run, whole)


def test_a_second_process_does_not_touch_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _crash(folder, 3)
    monkeypatch.setattr("rewriter.run_directory.PATIENCE", 0.0)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with alone_in(run.path):
        before[run.path / LOCK] = (run.path / LOCK).read_bytes()
        with pytest.raises(RunError, match="is training into it"):
            _resume(folder)
        after = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert after == before


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


def test_the_entropy_controller_goes_on(folder: Path) -> None:
    """Its coefficient is no weight; TRL keeps it in a file of its own, written last."""
    trainer = {
        "max_steps": 6,
        "use_adaptive_entropy": True,
        "entropy_target": 10.0,
        "entropy_coef_delta": 0.01,
    }
    straight = tiny.train_tiny(
        folder, **(SECTIONS | {"trainer": trainer}), output=str(folder / "straight")
    )
    assert [row["entropy_coef"] for row in tiny.steps(straight)] == pytest.approx(
        [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    )
    run = _crash(folder, 5, trainer=trainer)
    (run.checkpoints / "checkpoint-4" / "entropy_ctrl_state.json").unlink()
    _resume(folder, trainer=trainer)
    assert not _weights_differ(run, straight)
    assert _logged(run.metrics) == _logged(straight.metrics)


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


def test_other_data_or_settings_are_refused_by_name(folder: Path) -> None:
    run = _crash(folder, 3)
    with pytest.raises(RunError, match=r"trainer.learning_rate \(was 0.01, is 0.02\)"):
        _resume(folder, trainer={"max_steps": 6, "learning_rate": 0.02})
    with pytest.raises(RunError, match=r"lora.r \(was 4, is 8\)"):
        _resume(folder, lora={"r": 8})
    collection = folder / "collection"
    for file, old, new, named in [
        ("corpus.jsonl", "noise10", "noise99", "documents changed"),
        ("queries.jsonl", '"kappa alpha"', '"kappa beta"', "training_queries changed"),
        ("queries.jsonl", '"zeta eta"', '"eta zeta"', "validation_queries changed"),
        ("qrels/validation.tsv", "q7\td7", "q7\td10", "validation_queries changed"),
    ]:
        text = (collection / file).read_text()
        assert old in text
        (collection / file).write_text(text.replace(old, new))
        with pytest.raises(RunError, match=named):
            _resume(folder)
        (collection / file).write_text(text)
    assert [row["step"] for row in tiny.lines(run.evaluations)] == [0, 1, 2]  # still as it was


def test_alarms_are_not_said_again(folder: Path) -> None:
    """Each is said once a window, and a resumed run remembers the window."""
    sections = {"alarms": {"foreign_script": 0.0, "length": 1, "window": 100}}
    run = _crash(folder, 4, **sections)
    first = [row for row in tiny.lines(run.metrics) if "alarm" in row]
    assert [(row["step"], row["alarm"]) for row in first] == [(1, "length")]
    _resume(folder, **sections)
    assert [row for row in tiny.lines(run.metrics) if "alarm" in row] == first


@pytest.fixture(scope="module")
def adapter(whole: RunDirectory) -> dict[str, str]:
    """An adapter to start from, one that differs from a new one."""
    folder = whole.checkpoints / "checkpoint-6"
    assert any(w.abs().sum() > 0 for name, w in _weights(folder).items() if "lora_B" in name)
    return {"adapter": str(folder)}


def test_the_reference_of_a_started_adapter_is_that_adapter(
    folder: Path, adapter: dict[str, str]
) -> None:
    """|KL| < 1e-3 at the first step, and after a resume as in a run without a break."""
    trainer = {"max_steps": 6, "beta": 0.1, "learning_rate": 0.05}
    sections = {"model": adapter, "trainer": trainer}
    straight = tiny.train_tiny(folder, **(SECTIONS | sections), output=str(folder / "straight"))
    divergence = [row["kl"] for row in tiny.steps(straight)]
    assert abs(divergence[0]) < 1e-3
    assert divergence[-1] > 1e-3
    run = _crash(folder, 5, **sections)
    _resume(folder, **sections)
    assert [row["kl"] for row in tiny.steps(run)] == divergence
    _assert_same_run(run, straight)
    # The reference is the trainer's own, and no part of the result.
    assert not (run.best / "ref").exists()
    assert (run.checkpoints / "checkpoint-6" / "ref").exists()


def test_the_reference_survives_a_changed_starting_point(
    folder: Path, adapter: dict[str, str], tmp_path: Path
) -> None:
    """The checkpoint's copy counts, whatever became of the folder that the run started from."""
    start = tmp_path / "start"
    shutil.copytree(adapter["adapter"], start)
    sections = {
        "model": {"adapter": str(start)},
        "trainer": {"max_steps": 6, "beta": 0.1, "learning_rate": 0.05},
    }
    run = _crash(folder, 5, **sections)
    before = {row["step"]: row["kl"] for row in tiny.steps(run)}
    shutil.copy(
        run.checkpoints / "checkpoint-4" / "adapter_model.safetensors",
        start / "adapter_model.safetensors",
    )
    _resume(folder, **sections)
    after = {row["step"]: row["kl"] for row in tiny.steps(run)}
    assert after[5] > before[4] / 10 > 1e-5  # against the resumed weights it would be 0


def test_the_reference_of_a_new_adapter_is_the_base_model(folder: Path) -> None:
    sections = {"trainer": {"max_steps": 6, "beta": 0.1, "learning_rate": 0.05}}
    straight = tiny.train_tiny(folder, **(SECTIONS | sections), output=str(folder / "straight"))
    divergence = [row["kl"] for row in tiny.steps(straight)]
    assert abs(divergence[0]) < 1e-3
    _crash(folder, 5, **sections)
    assert [row["kl"] for row in tiny.steps(_resume(folder, **sections))] == divergence


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
