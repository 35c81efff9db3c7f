"""Grids: what is read, refused, planned, and what a dry run says."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter import cli
from rewriter.ablation.grid import Grid, GridError, read_grid
from rewriter.ablation.items import plan, trained_by
from rewriter.ablation.progress import Progress, costs, duration
from rewriter.ablation.reuse import processes, runs_at, step_seconds
from rewriter.ablation.state import Outcome, State
from rewriter.config import Config

GRIDS = sorted((Path(__file__).parent.parent / "configs" / "ablations").glob("*.yaml"))
BASE = "model: {name: x}\nreward: {backends: lexical}\ntrainer: {max_steps: 10}\n"
EVALUATE = {"backends": ["lexical"]}


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def grid_of(**values: Any) -> Grid:
    return Grid.model_validate({"base": "b.yaml", "output": "out", "evaluate": EVALUATE, **values})


def written(folder: Path, **values: Any) -> Path:
    (folder / "b.yaml").write_text(BASE)
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({"base": "b.yaml", "output": str(folder / "out")} | values))
    return path


def test_the_product_of_points_lists_and_seeds() -> None:
    grid = grid_of(
        axes={
            "on": {"a": {"reward.backends": "lexical"}, "b": {"reward.backends": "semantic"}},
            "rank": {"lora.r": [4, 8], "lora.lora_alpha": [8, 16]},
        },
        seeds=[1, 2],
        exclude=[{"on": "b", "rank": 8}, {"on": "a", "rank": 4, "seed": 2}],
    )
    assert [point.name for point in grid.points()] == [
        "a-rank4-seed1",
        "a-rank8-seed1",
        "a-rank8-seed2",
        "b-rank4-seed1",
        "b-rank4-seed2",
    ]
    first = next(grid.points())
    assert first.at == {"on": "a", "rank": "4", "seed": "1"}
    assert first.keys == {
        "reward.backends": "lexical",
        "lora.r": 4,
        "lora.lora_alpha": 8,
        "trainer.seed": 1,
    }


def test_labels_of_lists() -> None:
    grid = grid_of(
        axes={
            "on": {"reward.backends": ["lexical", ["lexical", "semantic"]]},
            "t": {"k": [0.5, None]},
        }
    )
    assert list(grid.axes["on"]) == ["lexical", "lexical+semantic"]
    assert list(grid.axes["t"]) == ["0.5", "null"]


def test_lists_that_go_together_may_repeat_a_value() -> None:
    grid = grid_of(axes={"size": {"lora.r": [4, 4, 8], "lora.lora_alpha": [8, 16, 16]}})
    assert list(grid.axes["size"]) == ["4, 8", "4, 16", "8, 16"]
    assert [point.name for point in grid.points()] == ["size4_8", "size4_16", "size8_16"]


def test_excluded_values_are_called_as_the_levels_are() -> None:
    """YAML reads true, null and lists; names such as `off` become false on both sides."""
    grid = grid_of(
        axes={
            "gain": {"reward.gain": [True, False]},
            "shaped": {False: {"reward.length_weight": 0.0}, True: {"reward.length_weight": 0.2}},
            "on": {"reward.backends": ["lexical", ["lexical", "semantic"]]},
            "patience": {"evaluation.patience": [None, 3]},
        },
        exclude=[
            {"gain": True},
            {"shaped": False},
            {"on": ["lexical", "semantic"]},
            {"patience": None},
        ],
    )
    (point,) = grid.points()
    assert point.at == {"gain": "false", "shaped": "true", "on": "lexical", "patience": "3"}
    assert point.name == "gainfalse-shapedtrue-lexical-patience3"


def test_a_grid_that_asks_for_no_matrix_has_one_for_every_axis() -> None:
    axes = {"a": {"lora.r": [4, 8]}, "b": {"trainer.beta": [0.0, 0.1]}}
    grid = grid_of(axes=axes, seeds=[1, 2])
    assert grid.tables() == (("a", "evaluated_on"), ("b", "evaluated_on"))
    assert grid_of(seeds=[1, 2]).tables() == (("seed", "evaluated_on"),)
    assert grid_of(axes=axes, matrices=[["a", "b"]]).tables() == (("a", "b"),)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"axes": {"seed": {"trainer.seed": [1]}}}, "axis 'seed': .* another name"),
        ({"axes": {"a": {"x": [1, 2], "y": [1]}}}, "lists of the same length"),
        ({"axes": {"a": {"x": [1, 1]}}}, "axis 'a': 1 is there twice"),
        ({"axes": {"a": {"x": [1, 1], "y": [2, 2]}}}, "axis 'a': 1, 2 is there twice"),
        ({"axes": {"a": {"x": []}}}, "axis 'a': its lists are empty"),
        ({"axes": {True: {"x": [1]}}}, "axis True: .* put it in quotes"),
        ({"seeds": [1], "matrices": [[True, "seed"]]}, "put it in quotes"),
        (
            {"seeds": [1], "set": {"trainer": {"max_steps": 4}}},
            "set: `trainer` as a whole .* write its keys with a dot: `trainer.max_steps`",
        ),
        (
            {"axes": {"a": {"p": {"prompt": {"system": "x"}}}}},
            "axis 'a', p: `prompt` as a whole .* `prompt.system`",
        ),
        (
            {"axes": {"a": {"lora.r": [1, 2]}, "b": {"p": {"lora.r": 8, "x": 1}}}},
            "'a' and 'b' both set `lora.r`",
        ),
        (
            {"axes": {"a": {"reward.backends.lexical": [1, 2]}, "b": {"reward.backends": ["x"]}}},
            "'a' and 'b' both set `reward.backends.lexical`",
        ),
        (
            {"axes": {"a": {"p": {"trainer.seed": 3}}}, "seeds": [1, 2]},
            "'a' and 'seed' both set `trainer.seed`",
        ),
        (
            {"axes": {"a": {"raw": {"lora.r": 8}}}},
            "axis 'a': raw is a system of `evaluate.systems` as well",
        ),
        ({"axes": {"a": 3}}, r"axis 'a': give key: \[values\]"),
        ({"axes": {"a": {"x": [1]}}, "exclude": [{"a": 2}]}, "there is no a: 2; there are a: 1"),
        ({"axes": {"a": {"x": [1]}}, "exclude": [{"a": 1}]}, "no run is left"),
        ({}, "no run is left"),
        ({"seeds": [1], "matrices": [["a", "seed"]]}, "no axis 'a'; there are: seed"),
        ({"seeds": [1], "matrices": [["evaluated_on", "seed"]]}, "as the second one"),
        ({"seeds": [1], "evaluate": {"backends": ["lexcal"]}}, "no backend 'lexcal'"),
        ({"seeds": [1], "axis": {}}, "there are: base, output"),
    ],
)
def test_what_is_refused(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    path = written(tmp_path, **{"evaluate": EVALUATE, **values})
    with pytest.raises(GridError, match=said) as error:
        read_grid(path)
    assert str(path) in str(error.value)


def test_a_fault_says_on_which_line(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    head = "base: b\noutput: o\nevaluate: {backends: [lexical]}\naxes:\n  a: {lora.r: [4, 8]}\n"
    for rest, said in (
        ("  b: {x: [1, 1]}\n", "6: `axes`: axis 'b': 1 is there twice"),
        ("  b:\n    raw: {x: 1}\n", "6: axis 'b': raw is a system"),
        ("seeds: [1]\nexclude: [{a: 5}]\n", "7: exclude: there is no a: 5"),
        ("set: {trainer: {x: 1}}\n", "6: set: `trainer` as a whole"),
        ("matrices: [[a, b]]\n", "6: matrices: no axis 'b'"),
        ("exclude: [{}]\n", "1: no run is left"),
    ):
        path.write_text(head + rest)
        with pytest.raises(GridError) as error:
            read_grid(path)
        assert str(error.value).startswith(f"{path}:{said}")
        assert "'base'" not in str(error.value)  # not the whole file


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


def _config(**values: Any) -> Config:
    base = {"model": {"name": "x"}, "reward": {"backends": "lexical"}}
    return Config.model_validate(base | values)


def test_a_fingerprint_is_of_what_is_trained() -> None:
    same = trained_by(_config())
    assert trained_by(_config(output="elsewhere", index_dir="i", threads=3)) == same
    assert trained_by(_config(evaluation={"systems": ["raw"], "bootstrap_samples": 100})) == same
    assert trained_by(_config(trainer={"report_to": "none"})) == same
    for other in (
        {"trainer": {"seed": 2}},
        {"evaluation": {"every": 3}},
        {"sampling": "informative"},
        {"warm_start": {"prompts": 2}},
        {"retrievers": {"lexical": {"k1": 1.7}}},
    ):
        assert trained_by(_config(**other)) != same


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_shipped_grids(path: Path) -> None:
    """Each is planned whole, its runs are accepted by TRL and peft, and its indexes are shared."""
    from rewriter.trainer_options import grpo_config, lora_config

    grid = read_grid(path)
    items = plan(grid, path, Path(grid.output))
    for item in items:
        options = grpo_config(item.config)
        lora_config(item.config)
        assert options.max_steps == (item.steps or 24)
        assert item.config.index_dir == "runs/ablations/indexes"
    limit = 96 if path.stem == "one_for_all" else 24
    assert max(item.steps or 0 for item in items) == limit


def test_the_central_table_has_every_backend_and_two_seeds() -> None:
    grid = read_grid(next(path for path in GRIDS if path.stem == "backends"))
    assert list(grid.axes["trained_on"]) == ["lexical", "semantic", "multimodal", "hybrid", "mixed"]
    assert grid.seeds == (1, 2)
    assert grid.matrices == (("trained_on", "evaluated_on"),)
    assert grid.evaluate.backends == ("lexical", "semantic", "multimodal", "hybrid")


def test_one_for_all_has_as_many_steps_as_the_others_together() -> None:
    path = next(path for path in GRIDS if path.stem == "one_for_all")
    steps = {
        (item.at["trained_on"], item.at["seed"]): item.steps
        for item in plan(read_grid(path), path, Path("out"))
        if item.trains
    }
    others = sum(steps.pop((name, "1")) or 0 for name in ("lexical", "semantic", "multimodal"))
    assert others + (steps[("hybrid", "1")] or 0) == steps[("one_for_all", "1")]


def test_its_other_runs_are_those_of_the_central_table() -> None:
    made = {}
    for stem in ("backends", "one_for_all"):
        path = next(path for path in GRIDS if path.stem == stem)
        items = plan(read_grid(path), path, Path("out"))
        made[stem] = {item.fingerprint for item in items if item.trains}
    assert len(made["backends"] & made["one_for_all"]) == 8  # 4 × 2


def _measured(folder: Path, *times: float, **trainer: Any) -> None:
    folder.mkdir(parents=True)
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}, "trainer": trainer}
    (folder / "config.yaml").write_text(Config.model_validate(values).to_yaml())
    rows = [{"step": n, "step_time": time} for n, time in enumerate(times)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(text + '{"step": 9, "step_ti')


def test_a_dry_run_prints_every_run_with_its_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path,
        axes={"n": {"trainer.num_generations": [4, 8]}, "steps": {"trainer.max_steps": [30, -1]}},
        reuse=[],
        evaluate=EVALUATE,
    )
    _measured(tmp_path / "out" / "runs" / "earlier", 9.0, 2.0, 2.0, num_generations=4)
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
    _measured(tmp_path / "runs" / "a", 5.0, num_generations=4)
    folders = runs_at(["runs/*", "none/*"], tmp_path)
    assert folders == [tmp_path / "runs" / "a"]
    assert step_seconds(_config(trainer={"num_generations": 4, "max_steps": 3}), folders) == 5.0
    assert step_seconds(_config(trainer={"num_generations": 8}), folders) is None


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    _measured(tmp_path / "grid[1]" / "runs" / "a", 5.0)
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
