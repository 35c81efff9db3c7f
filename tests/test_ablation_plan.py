"""Grids: their runs, what is found wrong before any training, and what a run's name stands for."""

import logging
from pathlib import Path
from typing import Any

import pytest

from rewriter.ablation.grid import GridError, read_grid
from rewriter.ablation.items import plan, trained_by
from rewriter.ablation.reuse import processes
from tests.ablation_grids import EVALUATE, config_of, written


def test_the_plan(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        set={"trainer.max_steps": 6},
        axes={"rate": {"trainer.learning_rate": [0.1, 1e-5]}},
        evaluate=EVALUATE,
    )
    items = plan(read_grid(path), path, tmp_path / "out", ["--trainer.temperature", "0.5"])
    baselines, *runs = items
    assert (baselines.trains, baselines.steps) == (False, 0)
    assert baselines.name.startswith("baselines.")
    assert [run.config.trainer for run in runs] == [
        {"max_steps": 6, "temperature": 0.5, "learning_rate": rate} for rate in (0.1, 1e-5)
    ]
    assert [run.name.rpartition(".")[0] for run in runs] == ["rate0.1", "rate1e-05"]
    assert runs[0].config.output == str(tmp_path / "out" / "runs" / runs[0].name)
    assert runs[0].steps == 6


def test_a_run_that_cannot_be_configured_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, axes={"a": {"rewad.kind": ["hit"]}}, evaluate=EVALUATE)
    with pytest.raises(GridError, match=r"grid\.yaml, hit: .*`rewad` is not a setting"):
        plan(read_grid(path), path, tmp_path)


def test_a_base_that_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, base="none.yaml", seeds=[1], evaluate=EVALUATE)
    with pytest.raises(GridError, match=r"grid\.yaml:\d+: `base`: .*none\.yaml is no file"):
        plan(read_grid(path), path, tmp_path)


@pytest.mark.parametrize(
    ("evaluate", "said"),
    [
        (
            {"backends": ["http"]},
            r"`evaluate\.backends`: .* on 'http', .*`retrievers\.http\..*`set`",
        ),
        ({"systems": ["raw", "hdye"]}, r"`evaluate\.systems`: no system 'hdye'; there are: raw, "),
        ({"systems": ["file:none.jsonl"]}, r"'file:none\.jsonl': there is no such file"),
    ],
)
def test_what_could_not_be_evaluated_is_refused_before_any_training(
    tmp_path: Path, evaluate: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, seeds=[1], evaluate=EVALUATE | evaluate)
    with pytest.raises(GridError, match=said) as error:
        plan(read_grid(path), path, tmp_path)
    assert f"{path}:" in str(error.value)


def test_a_word_that_no_run_would_use_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    axes = {"a": {"short": {"trainer.max_steps": 2}, "long": {"lora.r": 8}}}
    path = written(tmp_path, axes=axes, seeds=[1, 2], evaluate=EVALUATE)
    grid = read_grid(path)
    with pytest.raises(GridError, match=r"--trainer\.seed 3 would be used by no run: axis 'seed'"):
        plan(grid, path, tmp_path, ["--trainer.seed", "3"])
    logging.getLogger("rewriter").propagate = True
    steps = [item.steps for item in plan(grid, path, tmp_path, ["--trainer.max_steps", "9"])]
    assert steps == [0, 9, 9, 2, 2]  # long, then short, each with two seeds
    assert "--trainer.max_steps 9 is not used where axis 'a' is short" in caplog.text


def test_a_baseline_depends_on_its_prompts_and_all_on_what_is_measured(tmp_path: Path) -> None:
    path = written(tmp_path, seeds=[1], evaluate=EVALUATE)

    def evaluations(*words: str) -> list[str]:
        return [item.evaluation for item in plan(read_grid(path), path, tmp_path, words)]

    baselines, run = evaluations()
    prompted = evaluations("--evaluation.prompts.hyde.system", "Write a page.")
    assert prompted[0] != baselines
    assert prompted[1] == run
    for word in (("--evaluation.depth", "7"), ("--evaluation.samples", "3")):
        changed = evaluations(*word)
        assert changed[0] != baselines
        assert changed[1] != run


def test_the_number_of_processes() -> None:
    assert processes([]) == 1
    assert processes(["accelerate", "launch", "--num_processes", "4"]) == 4
    assert processes(["accelerate", "launch", "--num-processes=8"]) == 8
    assert processes(["accelerate", "launch"]) is None


def test_two_runs_that_are_the_same_are_refused(tmp_path: Path) -> None:
    axes = {"a": {"one": {"lora.r": 8}, "two": {"lora.r": 8}}}
    path = written(tmp_path, axes=axes, evaluate=EVALUATE)
    with pytest.raises(GridError, match=r"one\..* and two\..* are the same run"):
        plan(read_grid(path), path, tmp_path)


def test_a_fingerprint_is_of_what_is_trained() -> None:
    same = trained_by(config_of())
    assert trained_by(config_of(output="elsewhere", index_dir="i", threads=3)) == same
    assert trained_by(config_of(evaluation={"systems": ["raw"], "bootstrap_samples": 100})) == same
    assert trained_by(config_of(trainer={"report_to": "none"})) == same
    for other in (
        {"trainer": {"seed": 2}},
        {"evaluation": {"every": 3}},
        {"sampling": "informative"},
        {"warm_start": {"prompts": 2}},
        {"retrievers": {"lexical": {"k1": 1.7}}},
    ):
        assert trained_by(config_of(**other)) != same


def test_a_baseline_depends_on_what_its_files_hold(tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    made.write_text("first")
    systems = {"systems": ["raw", f"file:{made}"]}
    path = written(tmp_path, seeds=[1], evaluate=EVALUATE | systems)
    baselines, run = plan(read_grid(path), path, tmp_path)
    made.write_text("second")
    again, same = plan(read_grid(path), path, tmp_path)
    assert again.evaluation != baselines.evaluation
    assert (same.evaluation, same.name) == (run.evaluation, run.name)


def test_a_file_by_the_name_of_a_prompt(tmp_path: Path) -> None:
    """It is called as the evaluation calls it; or refused, where the grid cannot know."""
    from rewriter.evaluation.plan import plan as evaluated

    for stem in ("hyde", "raw", "own"):
        (tmp_path / f"{stem}.jsonl").touch()
    systems = [f"file:{tmp_path}/{stem}.jsonl" for stem in ("hyde", "raw", "own")]
    path = written(tmp_path, seeds=[1], evaluate=EVALUATE | {"systems": systems})
    grid = read_grid(path)
    assert grid.evaluate.names == ["hyde-2", "raw-2", "own"]
    assert [e.name for e in evaluated(config_of(), systems, [])] == ["raw", *grid.evaluate.names]
    with pytest.raises(GridError, match=r"own\.jsonl' goes by .* `evaluation\.prompts\.own`"):
        plan(grid, path, tmp_path, ["--evaluation.prompts.own.system", "x"])
