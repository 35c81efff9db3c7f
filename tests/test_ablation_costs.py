"""What a dry run says of each run, and how long the rest takes."""

from pathlib import Path

import pytest

from rewriter import cli
from rewriter.ablation.grid import read_grid
from rewriter.ablation.items import plan
from rewriter.ablation.progress import Progress, costs, duration
from rewriter.ablation.reuse import runs_at, step_seconds
from rewriter.ablation.state import Outcome, State
from tests.ablation_grids import EVALUATE, config_of, measured, written


def test_a_dry_run_prints_every_run_with_its_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path,
        axes={"n": {"trainer.num_generations": [4, 8]}, "steps": {"trainer.max_steps": [30, -1]}},
        reuse=[],
        evaluate=EVALUATE,
    )
    measured(tmp_path / "out" / "runs" / "earlier", 9.0, 2.0, 2.0, num_generations=4)
    cli.main(["ablate", "--config", str(path), "--dry-run"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0].endswith("evaluation only")
    assert lines[1].endswith("30 steps × 2.0 s = 1 min")  # the median; the half line is left out
    assert lines[2].endswith("set trainer.max_steps")
    assert lines[3].endswith("30 steps, no step of this size measured yet")
    assert lines[5].startswith("4 runs: 1 min of training steps, and 3 of unknown cost")
    cli.main(["ablate", "--config", str(path), "--dry_run", "--step_time", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("30 steps × 8.0 s = 4 min") for line in lines].count(True) == 2
    assert not (tmp_path / "out" / "outcomes").exists()
    for wrong in ("0", "x", "inf", "-1"):
        with pytest.raises(SystemExit):
            cli.main(["ablate", "--config", str(path), "--step_time", wrong])


def test_steps_of_another_size_say_nothing(tmp_path: Path) -> None:
    measured(tmp_path / "runs" / "a", 5.0, num_generations=4)
    folders = runs_at(["runs/*", "none/*"], tmp_path)
    assert folders == [tmp_path / "runs" / "a"]
    assert step_seconds(config_of(trainer={"num_generations": 4, "max_steps": 3}), folders) == 5.0
    assert step_seconds(config_of(trainer={"num_generations": 8}), folders) is None


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    measured(tmp_path / "grid[1]" / "runs" / "a", 5.0)
    assert runs_at(["runs/*"], tmp_path / "grid[1]") == [tmp_path / "grid[1]" / "runs" / "a"]


def test_time_left(tmp_path: Path) -> None:
    path = written(tmp_path, seeds=[1, 2, 3], evaluate=EVALUATE)
    items = plan(read_grid(path), path, tmp_path / "out")
    state = State(tmp_path / "out")
    progress = Progress(items, state, {item.name: 2.0 for item in items})
    assert progress.left() == 60.0  # 3 × 10 steps of 2 s
    others = [claim for item in items[2:] if (claim := state.claim(item)) is not None]
    assert progress.left() == 20.0  # two others are at work, and this one
    for claim in others:
        claim.release()
    # With evaluation and all, 10 steps took 50 s; 2 × 10 are left.
    state.end(items[1], Outcome("done", items[1].evaluation, seconds=50.0))
    assert progress.left() == 100.0
    state.end(items[2], Outcome("failed", items[2].evaluation, seconds=1.0))
    assert progress.left() == 50.0
    assert Progress(items, State(tmp_path / "new"), {}).left() is None
    assert [line.split()[-1] for line in list(costs(items, state, {}, {}))[1:3]] == [
        "done",
        "failed",
    ]
    assert [duration(s) for s in (29, 89, 7500)] == ["29 s", "1 min", "2 h 05 min"]


def test_what_was_done_in_two_parts_says_nothing_about_the_time_left(tmp_path: Path) -> None:
    path = written(tmp_path, seeds=[1, 2, 3], evaluate=EVALUATE)
    items = plan(read_grid(path), path, tmp_path / "out")
    state = State(tmp_path / "out")
    progress = Progress(items, state, {item.name: 2.0 for item in items})
    state.end(items[1], Outcome("done", items[1].evaluation, seconds=0.0))
    assert progress.left() == 40.0  # as measured
    state.end(items[2], Outcome("done", items[2].evaluation, seconds=50.0))
    assert progress.left() == 50.0


def test_a_dry_run_of_what_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, seeds=[1], reuse=[], evaluate=EVALUATE)
    _, item = plan(read_grid(path), path, tmp_path / "out")
    state = State(tmp_path / "out")
    state.end(item, Outcome("failed", item.evaluation))
    command = ["ablate", "--config", str(path), "--step_time", "60"]
    cli.main([*command, "--dry-run"])
    assert capsys.readouterr().out.splitlines()[1].endswith("failed")
    cli.main([*command, "--dry-run", "--retry_failed"])
    assert capsys.readouterr().out.splitlines()[1].endswith("10 steps × 60.0 s = 10 min")
    # Results of what is there: what failed must stay what it is.
    for word in ("--dry-run", "--retry_failed", "--no_wait"):
        with pytest.raises(SystemExit):
            cli.main([*command, "--results", word])
        assert "--results trains and evaluates nothing" in capsys.readouterr().err
    assert state.outcome(item) is not None
