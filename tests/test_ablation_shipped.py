"""The grids in configs/ablations/: each is planned whole, and says what its comments say."""

from pathlib import Path

import pytest

from rewriter.ablation.curves import completions_at
from rewriter.ablation.grid import read_grid
from rewriter.ablation.items import plan
from rewriter.config import Config
from tests.ablation_grids import GRIDS


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_shipped_grids(path: Path) -> None:
    """Each is planned whole, its runs are accepted by TRL and peft, and its indexes are shared."""
    from rewriter.trainer_options import grpo_config, lora_config

    grid = read_grid(path)
    items = plan(grid, path, Path(grid.output))
    for item in items:
        options = grpo_config(item.config)
        lora_config(item.config)
        assert not item.trains or options.max_steps == item.steps
        assert item.config.index_dir == "runs/ablations/indexes"
    limit = 96 if path.stem == "one_for_all" else 24
    assert all(0 < (item.steps or 0) <= limit for item in items if item.trains)


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


def test_completions_are_counted_with_those_of_a_warm_start() -> None:
    """The shipped grid compares a warm with a cold start at equal samples."""
    path = Path(__file__).parent.parent / "configs" / "ablations" / "sampling.yaml"
    made = {
        item.at["start"]: completions_at(item.config, 1, item.steps or 0)
        for item in plan(read_grid(path), path, Path("out"))
        if item.trains
    }
    assert made["warm"] == made["uniform"] == made["informative"]
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}}
    trainer = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    config = Config.model_validate(values | {"trainer": trainer | {"num_iterations": 2}})
    assert completions_at(config, 2, 5) == 5 * 4 * 3 * 2 // 2
