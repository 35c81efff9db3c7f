"""A run of six steps, copies of it that end by an error, and how they are compared."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rewriter.run_directory import RunDirectory
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
