"""A whole grid on the tiny policy: trained, evaluated, reused, resumed after kills."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from rewriter import cli
from rewriter.ablation import job, worker
from rewriter.ablation.grid import read_grid
from rewriter.ablation.items import Item, plan
from rewriter.ablation.state import Outcome, State
from rewriter.run_directory import RunDirectory
from tests import tiny

ROOT = Path(__file__).parent.parent
CUSTOM = {"custom": {"path": "tests.own_engines:Engine"}}


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


class Jobs:
    """Does jobs in this process; `done` are the words of each."""

    def __init__(self) -> None:
        self.done: list[list[str]] = []

    def __call__(self, command: Sequence[str], log: Path, must_stop: Callable[[], bool]) -> int:
        words = list(command[command.index("rewriter.ablation.job") + 1 :])
        self.done.append(words)
        log.parent.mkdir(parents=True, exist_ok=True)
        loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
        handlers = [logger.handlers for logger in loggers]
        try:
            with log.open("a") as said, contextlib.redirect_stderr(said):
                job.main(words)
        except SystemExit as end:
            return int(end.code or 0)
        finally:  # the job's own write into its log
            for logger, before in zip(loggers, handlers, strict=True):
                logger.handlers = before
        return 0

    @property
    def trained(self) -> list[str]:
        return [words[1].rpartition("/")[2] for words in self.done if words[0] == "train"]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    made = Jobs()
    monkeypatch.setattr(worker, "run_bound", made)
    return made


def written(folder: Path, **values: Any) -> Path:
    """A grid over the tiny configuration; two runs and the baselines."""
    base = tiny.settings(folder, trainer={"max_steps": 2}, evaluation={"systems": ["raw"]})
    (folder / "base.yaml").write_text(yaml.safe_dump(base | {"retrievers": CUSTOM}))
    grid = {
        "base": "base.yaml",
        "output": str(folder / "out"),
        "axes": {
            "on": {
                "lexical": {"reward.backends": "lexical"},
                "custom": {"reward.backends": "custom"},
            }
        },
        "evaluate": {"backends": ["lexical", "custom"], "systems": ["raw", "untrained"]},
        "matrices": [["on", "evaluated_on"]],
        "reuse": [],
    }
    path = folder / f"grid{len(list(folder.glob('grid*')))}.yaml"
    path.write_text(yaml.safe_dump(grid | values, sort_keys=False))
    return path


def outcomes(path: Path) -> dict[str, tuple[Item, Outcome | None, State]]:
    grid = read_grid(path)
    state = State(grid.output)
    items = plan(grid, path, Path(grid.output))
    return {item.name.rpartition(".")[0]: (item, state.outcome(item), state) for item in items}


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
    assert not ended["mine"][2].run(ended["mine"][0]).exists()

    corpus = tmp_path / "collection" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("noise10", "noise99"))
    path = written(tmp_path, output=str(tmp_path / "out3"), **more)
    cli.main(["ablate", "--config", str(path)])
    assert [found and found.reused for _, found, _ in outcomes(path).values()] == [False] * 3


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
