"""Runs that are there already: which of them count, and which do not."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewriter import cli
from rewriter.ablation import worker
from rewriter.ablation.reuse import finished_like, is_finished, runs_at, step_seconds
from rewriter.checkpoint import MANIFEST
from rewriter.config import Config, load
from rewriter.resume import compare
from rewriter.run_directory import RunDirectory
from tests.ablation_grids import config_of, measured
from tests.ablation_runs import Jobs, ends_with, outcomes, written

pytestmark = pytest.mark.usefixtures("signals")


def test_a_finished_run_is_reused_if_data_and_settings_are_the_same(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["ablate", "--config", str(written(tmp_path))])
    assert len(jobs.trained) == 2
    axes = {
        "on": {
            "mine": {"reward.backends": "lexical", "evaluation.bootstrap_samples": 200},
            "other": {"reward.backends": "lexical", "trainer.seed": 7},
        }
    }
    more = {"reuse": [str(tmp_path / "out" / "runs" / "*")], "axes": axes}
    path = written(tmp_path, output=str(tmp_path / "out2"), **more)
    cli.main(["ablate", "--config", str(path), "--dry-run"])
    assert "evaluation only: trained in" in capsys.readouterr().out
    cli.main(["ablate", "--config", str(path)])
    ended = outcomes(path)
    assert [found and found.reused for _, found, _ in ended.values()] == [False, True, False]
    assert [name.partition(".")[0] for name in jobs.trained] == ["lexical", "custom", "other"]
    mine = ended["mine"][0]
    assert not ended["mine"][2].run(mine).exists()
    folders = runs_at(more["reuse"])
    assert finished_like(mine, folders) is not None
    assert finished_like(mine, folders, ["accelerate", "launch", "--num_processes", "2"]) is None

    corpus = tmp_path / "collection" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("noise10", "noise99"))
    path = written(tmp_path, output=str(tmp_path / "out3"), **more)
    cli.main(["ablate", "--config", str(path)])
    assert [found and found.reused for _, found, _ in outcomes(path).values()] == [False] * 3


def test_what_was_found_on_other_data_counts_no_more(
    tmp_path: Path, jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    cli.main(["ablate", "--config", str(path)])
    corpus = tmp_path / "collection" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("noise10", "noise99"))
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        cli.main(["ablate", "--config", str(path)])
    assert end.value.code == 2
    assert "other data (documents changed since); give another --output" in capsys.readouterr().err
    cli.main(["ablate", "--config", str(path), "--results"])
    # Killed after a training, before it was evaluated: that training does not count either.
    for file in (tmp_path / "out" / "outcomes").iterdir():
        file.unlink()
    with pytest.raises(SystemExit) as end:
        cli.main(["ablate", "--config", str(path)])
    assert end.value.code == 1
    assert len(jobs.trained) == 2
    failed = outcomes(path)["lexical"][1]
    assert failed is not None
    assert "was trained on other data (documents changed since)" in str(failed.error)


def _finished(folder: Path, **trainer: Any) -> RunDirectory:
    """What a training leaves, as far as it is looked at here."""
    measured(folder, 5.0, **trainer)
    run = RunDirectory(folder)
    run.best.mkdir()
    config = load(folder / "config.yaml").dump()
    (run.best / MANIFEST).write_text(json.dumps({"config": config}))
    run.result.write_text("{}")
    return run


def test_a_run_that_goes_on_for_more_steps_is_not_finished(tmp_path: Path) -> None:
    """Its result is there until it ends again, and is that of fewer steps."""
    run = _finished(tmp_path / "run", max_steps=8)
    assert is_finished(run)
    config = load(run.path / "config.yaml")
    seen = config.model_copy(update={"threads": 3, "index_dir": "elsewhere"})
    (run.path / "config.yaml").write_text(seen.to_yaml())
    assert is_finished(run)
    longer = config.model_copy(update={"trainer": {"max_steps": 96}})
    (run.path / "config.yaml").write_text(longer.to_yaml())
    assert not is_finished(run)
    (run.best / MANIFEST).write_text("{}")
    assert not is_finished(run)
    (run.path / "config.yaml").unlink()  # as while it is replaced
    assert not is_finished(run)
    assert step_seconds(config, [run.path]) is None


def test_a_folder_that_another_run_was_given_is_read_anew(tmp_path: Path) -> None:
    measured(tmp_path / "run", 5.0, num_generations=4)
    wanted = config_of(trainer={"num_generations": 4})
    assert step_seconds(wanted, [tmp_path / "run"]) == 5.0
    path = tmp_path / "run" / "config.yaml"
    path.write_text(config_of(trainer={"num_generations": 8}).to_yaml())
    os.utime(path, ns=(0, 0))
    assert step_seconds(wanted, [tmp_path / "run"]) is None


def test_baselines_on_other_data_count_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are the first to be evaluated: a break may come before any run is over."""
    monkeypatch.setattr(worker, "run_bound", ends_with(0, ""))
    path = written(tmp_path)
    for code in (1, 2):
        with pytest.raises(SystemExit) as end:
            cli.main(["ablate", "--config", str(path)])
        assert end.value.code == code
        ended = {name: found and found.status for name, (_, found, _) in outcomes(path).items()}
        assert ended == {"baselines": "done", "lexical": "failed", "custom": "failed"}
        corpus = tmp_path / "collection" / "corpus.jsonl"
        corpus.write_text(corpus.read_text().replace("noise10", "noise99"))
    said = capsys.readouterr().err
    assert "baselines." in said
    assert "was carried out on other data (documents changed since)" in said


def test_a_run_is_resumed_though_something_else_is_measured_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights depend on none of it, and a resume refuses another configuration."""
    path = written(tmp_path)
    item, _, state = outcomes(path)["lexical"]
    own = state.run(item)
    own.mkdir(parents=True)
    (own / "config.yaml").write_text(item.config.to_yaml())
    (own / "run.json").write_text("{}")
    path = written(tmp_path, set={"evaluation.depth": 7, "index_dir": str(tmp_path / "i")})
    now, _, _ = outcomes(path)["lexical"]
    assert now.name == item.name
    given: list[Config] = []

    def trains(command: Sequence[str], log: Path, must_stop: Callable[[], bool]) -> int:
        if "--resume" in command:
            given.append(load(command[command.index("train") + 1]))
        return ends_with(2, "")(command, log, must_stop)

    monkeypatch.setattr(worker, "run_bound", trains)
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path)])
    (config,) = given
    compare(own, config.dump(), {}, {})
    assert config.index_dir == str(tmp_path / "i")
    # Killed between its first two files, it starts anew.
    (own / "config.yaml").unlink()
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--config", str(path), "--retry_failed"])
    assert len(given) == 1
