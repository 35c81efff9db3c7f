"""What a resumed run has kept beside its weights, and what it refuses."""

import shutil
from pathlib import Path

import pytest

from rewriter.resume import RunError
from rewriter.run_directory import RunDirectory
from rewriter.run_lock import LOCK, alone_in
from tests import interrupted_runs, tiny
from tests.interrupted_runs import (
    SECTIONS,
    _assert_same_run,
    _crash,
    _logged,
    _resume,
    _same,
    _weights,
)

# Fixtures; the last one is used by itself.
whole, folder = interrupted_runs.whole, interrupted_runs.folder
_alive = interrupted_runs._alive


def _weights_differ(run: RunDirectory, other: RunDirectory) -> bool:
    return not _same(run.checkpoints / "checkpoint-6", other.checkpoints / "checkpoint-6")


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


def test_alarms_are_not_said_again(folder: Path) -> None:
    """Each is said once a window, and a resumed run remembers the window."""
    sections = {"alarms": {"foreign_script": 0.0, "length": 1, "window": 100}}
    run = _crash(folder, 4, **sections)
    first = [row for row in tiny.lines(run.metrics) if "alarm" in row]
    assert [(row["step"], row["alarm"]) for row in first] == [(1, "length")]
    _resume(folder, **sections)
    assert [row for row in tiny.lines(run.metrics) if "alarm" in row] == first


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
