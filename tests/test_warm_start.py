"""Best-of-n rewrites of the untrained model, one supervised pass on them, then GRPO."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rewriter import warm_start
from rewriter.config import Config
from rewriter.run_directory import RunDirectory
from tests import own_rewards, tiny
from tests.own_rewards import Crash

SECTIONS: dict[str, Any] = {
    "warm_start": {"prompts": 7, "samples": 16, "epochs": 4, "learning_rate": 0.02},
    "reward": {"kind": "ndcg", "function": "tests.own_rewards:dies"},
    "evaluation": {"every": 1},
    "trainer": {"max_steps": 3},
}


def trained(folder: Path, resume: bool = False, **sections: Any) -> RunDirectory:
    from rewriter.training import train

    given = SECTIONS | sections
    own = {key: given.pop(key) for key in ("warm_start",)}
    config = Config.model_validate(tiny.settings(folder, **given) | own)
    train(config, resume=resume)
    return RunDirectory(config.output)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained(tmp_path_factory.mktemp("warm"))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "adapter_model.safetensors")


def same(one: Path, other: Path) -> bool:
    left, right = weights(one), weights(other)
    assert left.keys() == right.keys()
    return all(torch.equal(left[name], right[name]) for name in left)


def test_what_is_imitated_earned_something(run: RunDirectory) -> None:
    rows = tiny.lines(run.path / "warm_start" / "chosen.jsonl")
    assert 0 < len(rows) <= 6
    assert tiny.read(run.path / "warm_start" / "cost.json") == {"completions": 6 * 16}
    assert len({row["query_id"] for row in rows}) == len(rows)
    for row in rows:
        number = int(row["query_id"].removeprefix("q"))
        # Only its own document is relevant, and only its own word finds that.
        (answer,) = row["completion"]
        assert tiny.WORDS[number] in answer["content"].split()
        assert row["reward"] > 0
        assert row["of"] == 16


def test_training_begins_with_the_warm_adapter(run: RunDirectory) -> None:
    warm = run.path / "warm_start" / "adapter"
    assert any(w.abs().sum() > 0 for name, w in weights(warm).items() if "lora_B" in name)
    assert same(run.adapter(0), warm)  # the first evaluation is the best so far
    assert tiny.read(run.path / "best" / "manifest.json")["config"]["model"]["adapter"] is None


def test_the_model_writes_what_it_imitated_more_often(run: RunDirectory) -> None:
    """The loss of the chosen rewrites is lower with the warm adapter than without."""
    from rewriter.policy import attach, load_model

    model, tokenizer = load_model(str(run.path.parent / "policy"), None, "float32")
    rows = tiny.lines(run.path / "warm_start" / "chosen.jsonl")

    def loss() -> float:
        total = 0.0
        for row in rows:
            shown = tokenizer.apply_chat_template(
                row["prompt"], tokenize=False, add_generation_prompt=True
            )
            whole = tokenizer.apply_chat_template(
                [*row["prompt"], *row["completion"]], tokenize=False
            )
            start = len(tokenizer(shown, add_special_tokens=False).input_ids)
            ids = tokenizer(whole, add_special_tokens=False, return_tensors="pt").input_ids
            labels = ids.clone()
            labels[:, :start] = -100
            with torch.no_grad():
                total += float(model(input_ids=ids, labels=labels).loss)
        return total

    before = loss()
    model = attach(model, run.path / "warm_start" / "adapter").eval()
    assert loss() < before - 0.05 * len(rows)


def _like(run: RunDirectory, folder: Path) -> Path:
    for part in ("policy", "collection"):
        shutil.copytree(run.path.parent / part, folder / part)
    return folder


def test_a_resumed_run_does_not_warm_up_again(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_rewards.die_in = 2
    try:
        with pytest.raises(Crash):
            trained(_like(run, tmp_path))
    finally:
        own_rewards.die_in = None
    monkeypatch.setattr(warm_start, "_warm_up", None)
    resumed = trained(tmp_path, resume=True)
    assert same(resumed.best, run.best)
    assert same(resumed.checkpoints / "checkpoint-3", run.checkpoints / "checkpoint-3")


def test_killed_before_the_supervised_pass_was_over(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(warm_start, "_imitate", dies)
        with pytest.raises(Crash):
            trained(_like(run, tmp_path))
    # Half an adapter, as a killed save leaves it.
    (tmp_path / "run" / "warm_start" / ".unfinished").mkdir()
    monkeypatch.setattr(warm_start, "_best", None)  # nothing is sampled a second time
    resumed = trained(tmp_path, resume=True)
    assert same(resumed.path / "warm_start" / "adapter", run.path / "warm_start" / "adapter")
    assert same(resumed.best, run.best)


def test_where_nothing_was_earned_it_starts_cold(
    run: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(warm_start, "_earned", lambda panel, rows, texts: [0.0] * len(texts))
    monkeypatch.setattr(logging.getLogger("rewriter"), "propagate", True)
    cold = trained(_like(run, tmp_path))
    assert "no sampled rewrite earned anything" in caplog.text
    assert not (cold.path / "warm_start" / "adapter").exists()
    assert cold.result.is_file()


def test_off_by_default(tmp_path: Path) -> None:
    cold: RunDirectory = tiny.train_tiny(tmp_path, trainer={"max_steps": 2})
    assert not (cold.path / "warm_start").exists()
