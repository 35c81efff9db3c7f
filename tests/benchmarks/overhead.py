"""What our training loop costs beside TRL's own, and what the search costs within a step.

    python -m tests.benchmarks.overhead                   configs/demo.yaml
    python -m tests.benchmarks.overhead --config FILE     another configuration
    python -m tests.benchmarks.overhead --small           a model of some thousand weights

Ours is `train` with its callbacks, journals and real search; bare is a plain GRPOTrainer with the
same model, prompts and settings and a constant reward. A run is a process of its own, and runs
alternate, so that a machine that slows down slows both. The learning rate is next to nothing: both
sides then write the same completions, which is checked. The first step is left out, held-out
evaluation and the end of the run too. Threads are what OMP_NUM_THREADS says, one unless it is set.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rewriter.config import Config, load
from tests.benchmarks.figures import Figure, show

PAIRS, SMALL_PAIRS = 5, 2
STEPS = 5  # the first of them is left out
NEVER = 720_720  # steps to the next evaluation; a multiple of whatever a rollout buffer lasts


def main() -> None:
    """Measure and show; with --side, be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a tiny model, no goal is judged")
    parser.add_argument("--config", default="configs/demo.yaml", help="YAML file (%(default)s)")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        SIDES[options.side](load(options.config))
        return
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), options.config, options.small)


def _measure(folder: Path, config: str, small: bool) -> None:
    ratios, shares = [], []
    for pair in range(SMALL_PAIRS if small else PAIRS):
        order = list(SIDES) if pair % 2 else list(reversed(SIDES))
        rows = {side: _run(folder, f"{pair}-{side}", side, config, small) for side in order}
        _check_same_work(rows)
        seconds = {side: _seconds(steps) for side, steps in rows.items()}
        ratios.append(seconds["ours"] / seconds["bare"] - 1)
        search = fmean(row["search/reward_seconds"] for row in rows["ours"][1:])
        shares.append(search / seconds["ours"])
        print(
            f"pair {pair + 1}: bare {seconds['bare']:.3f} s a step, ours {seconds['ours']:.3f} s, "
            f"overhead {ratios[-1]:+.2%}, search {shares[-1]:.2%}",
            flush=True,
        )
    threads = os.environ["OMP_NUM_THREADS"]
    print(f"{threads} threads; overhead from {min(ratios):+.2%} to {max(ratios):+.2%}")
    figures = {
        "overhead": Figure(median(ratios), 0.03, "lower", "share of a bare step"),
        "reward_share": Figure(median(shares), 0.02, "lower", "share of our step"),
    }
    show(figures, small)


def _run(folder: Path, name: str, side: str, config: str, small: bool) -> list[dict[str, Any]]:
    """One training in its own process; the rows it logged, one a step."""
    place = folder / name
    settings = folder / f"{name}.yaml"
    settings.write_text(_config(folder, place, config, small).to_yaml(), encoding="utf-8")
    command = [sys.executable, "-m", "tests.benchmarks.overhead", "--side", side]
    done = subprocess.run(
        [*command, "--config", str(settings)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the {side} run failed:\n{done.stderr}")
    lines = (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "reward" in row]


def _config(folder: Path, output: Path, file: str, small: bool) -> Config:
    if small:
        import yaml

        from tests.tiny import settings

        file = str(folder / "tiny.yaml")
        Path(file).write_text(yaml.safe_dump(settings(folder)), encoding="utf-8")
    values = {
        "output": output,
        "threads": os.environ["OMP_NUM_THREADS"],
        "evaluation.every": NEVER,
        "trainer.max_steps": STEPS,
        "trainer.logging_steps": 1,
        "trainer.save_strategy": "'no'",  # quoted: YAML's bare no is false
        "trainer.learning_rate": 1e-12,
    }
    return load(file, [word for key, value in values.items() for word in (f"--{key}", str(value))])


def _ours(config: Config) -> None:
    from rewriter import best_adapter, result, training

    def leave_out(*_: object) -> None:
        """Held-out evaluation is not part of a step."""

    best_adapter.BestAdapter._evaluate = leave_out  # type: ignore[assignment, method-assign]
    result.finish = lambda *_: Path(config.output)
    training.train(config)


def _bare(config: Config) -> None:
    import torch
    from datasets import Dataset
    from trl import GRPOTrainer

    from retrievers.models import resolve
    from rewriter.cpu_head import score_completions_only
    from rewriter.trainer_options import grpo_config, lora_config
    from rewriter.trainer_setup import lighten
    from rewriter.training_data import load_data

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    score_completions_only()  # what we save in the model is not to hide what the rest costs
    trainer = GRPOTrainer(
        model=resolve(config.model.name),
        reward_funcs=_constant,
        args=grpo_config(config),
        train_dataset=Dataset.from_list(load_data(config).rows),
        peft_config=lora_config(config),
    )
    lighten(trainer)
    trainer.add_callback(_clock(Path(config.output)))
    trainer.train()


def _constant(completions: list[Any], **_: Any) -> list[float]:
    return [1.0] * len(completions)


def _clock(folder: Path) -> Any:
    """Writes what our journal writes of a step: when it was logged, and what was logged."""
    import time

    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_log(
            self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
        ) -> None:
            row = {"step": state.global_step, "time": time.time(), **logs}
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    return Clock()


def _seconds(rows: list[dict[str, Any]]) -> float:
    """Mean length of a step, from the end of the first to the end of the last."""
    return float(rows[-1]["time"] - rows[0]["time"]) / (len(rows) - 1)


def _check_same_work(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    lengths = {
        side: [row["completions/mean_length"] for row in steps] for side, steps in rows.items()
    }
    if lengths["ours"] != lengths["bare"] or len(lengths["ours"]) != STEPS:
        raise SystemExit(f"the two sides wrote completions of different lengths: {lengths}")


SIDES: dict[str, Callable[[Config], None]] = {"bare": _bare, "ours": _ours}


if __name__ == "__main__":
    main()
