"""A whole grid on the tiny policy: trained, evaluated, resumed after kills."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rewriter import cli
from rewriter.ablation import worker
from rewriter.ablation.state import Outcome
from rewriter.run_directory import RunDirectory
from tests import tiny
from tests.ablation_runs import Jobs, ends_with, outcomes, written

ROOT = Path(__file__).parent.parent


pytestmark = pytest.mark.usefixtures("signals")


def test_a_grid_with_a_run_that_fails(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = {
        "on": {
            "lexical": {"reward.backends": "lexical"},
            "broken": {"trainer.learning_rate": -1},
            "custom": {"reward.backends": "custom"},
        }
    }
    path = written(tmp_path, axes=axes)
    with pytest.raises(SystemExit) as end:
        cli.main(["ablate", "--config", str(path)])
    assert end.value.code == 1
    ended = outcomes(path)
    assert {name: found and found.status for name, (_, found, _) in ended.items()} == {
        "baselines": "done",
        "lexical": "done",
        "broken": "failed",
        "custom": "done",
    }
    failed = ended["broken"][1]
    assert failed is not None
    assert failed.stage == "train"
    assert "`trainer.learning_rate` is -1; it must be 0 or more" in str(failed.error)
    out = capsys.readouterr().out
    assert "- broken." in out
    matrix = tiny.read(tmp_path / "out" / "matrix.json")
    assert matrix["rows"] == ["raw", "untrained", "lexical", "broken", "custom"]
    missing = [[cell is None for cell in row] for row in matrix["values"]]
    assert missing == [[False] * 2] * 3 + [[True] * 2] + [[False] * 2]
    # Every raw query has its document in the second place on lexical; custom finds d2 and d0 only.
    assert [cell[0] for cell in matrix["values"][0]] == pytest.approx([0.63093, 0.0], abs=1e-5)
    assert (tmp_path / "out" / "report" / "report.html").is_file()

    # What is evaluated of a run is what its training wrote: the same mean on its own backend.
    item, _, state = ended["lexical"]
    own = tiny.read(state.run(item) / "result.json")["lexical"]["trained"]["ndcg@3"]["mean"]
    assert matrix["values"][2][0][0] == pytest.approx(own)

    # Again: nothing is done twice, not even what failed, unless it is asked for.
    before = len(jobs.done)
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path)])
    assert len(jobs.done) == before
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path), "--retry_failed"])
    assert [words[0] for words in jobs.done[before:]] == ["train"]


def test_a_split_that_is_not_there_is_said_before_any_training(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, evaluate={"backends": ["lexical"], "split": "tset"})
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path)])
    assert "`evaluate.split`: no split 'tset' in the collection; there are: " in (
        capsys.readouterr().err
    )
    assert not jobs.done


def test_a_run_that_was_killed_says_by_which_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MOMENT", 0.0)
    path = written(tmp_path)
    for code, said, error in (
        (2, "error: no such model\n", "no such model"),
        (-9, "step 3\n", "signal 9; step 3"),
        (-9, "", "signal 9"),  # nothing of what the tries before said
        (1, "Traceback\nKeyError: 'x'\n", "exit code 1; KeyError: 'x'"),
    ):
        monkeypatch.setattr(worker, "run_bound", ends_with(code, said))
        with pytest.raises(SystemExit):
            cli.main(["ablate", "--config", str(path), "--retry_failed"])
        failed = outcomes(path)["lexical"][1]
        assert failed is not None
        assert failed.error == error


def test_a_worker_that_is_ended_with_its_command_leaves_the_run_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch system signals all processes at once, and the command may be gone first."""
    path = written(tmp_path)
    monkeypatch.setattr(worker, "run_bound", ends_with(-15, ""))
    monkeypatch.setattr(time, "sleep", lambda _: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as end:
        cli.main(["ablate", "--config", str(path)])
    assert end.value.code == 130
    assert "give the same command again to go on" in capsys.readouterr().err
    assert [found for _, found, _ in outcomes(path).values()] == [None] * 3
    item, _, state = outcomes(path)["baselines"]
    assert not state.claims.held(item.name)


def test_results_are_written_anew_if_another_worker_ended_a_run_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rewriter.ablation import results

    path = written(tmp_path)
    item, _, state = outcomes(path)["custom"]
    write = results.write_results
    seen: list[str] = []

    def slow(*given: Any) -> str:
        text = write(*given)
        if not seen:
            state.end(item, Outcome("failed", item.evaluation, "train", "gone"))
        seen.append(text)
        return text

    monkeypatch.setattr(results, "write_results", slow)
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path), "--results"])
    assert len(seen) == 2
    assert "(train): gone" in capsys.readouterr().out


def test_a_prompt_for_each_backend_is_evaluated_by_its_checkpoint(
    tmp_path: Path, jobs: Jobs
) -> None:
    axes = {"on": {"all": {"prompt.system": "{backend}"}}}
    path = written(tmp_path, axes=axes)
    cli.main(["ablate", "--config", str(path)])
    assert "--checkpoint" in jobs.done[-1]
    item, _, state = outcomes(path)["all"]
    systems = tiny.read(state.evaluation(item) / "facts.json")["systems"]
    assert list(systems) == ["raw", item.name.replace(".", "-")]


def test_where_baselines_are_sampled_a_run_is_too(tmp_path: Path, jobs: Jobs) -> None:
    path = written(tmp_path, set={"evaluation.samples": 2}, axes={"on": {"lora.r": [3]}})
    cli.main(["ablate", "--config", str(path)])
    for item, _, state in outcomes(path).values():
        rows = tiny.lines(state.evaluation(item) / "records.jsonl")
        assert {len(row["samples"]) for row in rows if row["system"] != "raw"} == {2}


# Files that appear one after the other: at each of them, and a moment later, the worker is killed.
MOMENTS = (
    "configs/*",
    "runs/*/config.yaml",
    "runs/*/run.json",
    "runs/*/evaluations.jsonl",
    "runs/*/checkpoints/checkpoint-2/trainer_state.json",
    "runs/*/best/manifest.json",
    "runs/*/result.json",
    "evals/*/parts/*",
    "evals/*/facts.json",
    "outcomes/*",
)


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_as_if_it_had_not_been(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = {"rate": {"trainer.learning_rate": [0.01]}}
    more = {"axes": axes, "matrices": [["rate", "evaluated_on"]], "set": {"trainer.max_steps": 4}}
    more["evaluate"] = {"backends": ["lexical", "custom"], "systems": []}
    straight = written(tmp_path, **more)
    cli.main(["ablate", "--config", str(straight)])
    broken = written(tmp_path, output=str(tmp_path / "broken"), **more)
    command = [sys.executable, "-m", "rewriter.cli", "ablate", "--config", str(broken)]
    for moment in MOMENTS:
        started = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 240
        while not list((tmp_path / "broken").glob(moment)) and started.poll() is None:
            assert time.monotonic() < end, moment
            time.sleep(0.01)
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
    last = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr
    runs = [RunDirectory(next((tmp_path / name / "runs").iterdir())) for name in ("out", "broken")]
    left, right = (load_file(run.best / "adapter_model.safetensors") for run in runs)
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert tiny.read(runs[0].result) == tiny.read(runs[1].result)
    for file in ("matrix.json", "factors.json"):
        assert tiny.read(tmp_path / "out" / file) == tiny.read(tmp_path / "broken" / file)
