"""What happens around the optimizer: logs, progress, the order of prompts."""

import math
import time
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from rewards.search import StepScores
from rewriter.jsonl import append
from rewriter.run_directory import RunDirectory


class Journal(TrainerCallback):  # type: ignore[misc]
    """Local logs that need no account and no network: `metrics.jsonl` and `completions.jsonl`."""

    def __init__(self, run: RunDirectory, rank: int) -> None:
        self._run = run
        self._rank = rank

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
    ) -> None:
        """Write what goes to every tracker, with NaN as null."""
        if state.is_world_process_zero:
            numbers = {key: _finite(value) for key, value in logs.items()}
            append(self._run.metrics, {"step": state.global_step, "time": time.time(), **numbers})

    def completions(self, scores: StepScores) -> None:
        """Write one step's completions and what the search made of them."""
        for row in scores.rows:
            line = {
                # The reward is computed before the step is counted.
                "step": (scores.step or 0) + 1,
                "query_id": row.query_id,
                "query": row.query,
                "completion": row.completion,
                "rewrite": row.parsed.text,
                "failure": row.parsed.failure,
                "text": row.search_text,
                "hits": {name: [list(hit) for hit in hits] for name, hits in row.hits.items()},
                "rewards": dict(row.rewards),
                "search_failed": row.failed,
            }
            append(self._run.completions(self._rank), line)


class Progress(TrainerCallback):  # type: ignore[misc]
    """One bar: steps, time left, the last reward, the last held-out NDCG@3."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the bar where the run stands."""
        from tqdm.auto import tqdm

        if state.is_world_process_zero:
            self._bar = tqdm(
                total=state.max_steps, initial=state.global_step, desc="training", unit="step"
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Advance."""
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
    ) -> None:
        """Show the newest numbers."""
        if self._bar is None:
            return
        if logs.get("reward") is not None:
            self._shown["reward"] = f"{logs['reward']:.3f}"
        for key, value in logs.items():
            if key.startswith("eval_") and key.endswith("_ndcg@3"):
                backend = key.removeprefix("eval_").removesuffix("_ndcg@3")
                self._shown[f"held-out {backend} NDCG@3"] = f"{value:.3f}"
        self._bar.set_postfix(self._shown)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()


class PromptOrder(TrainerCallback):  # type: ignore[misc]
    """Gives a resumed run the order of prompts that it would have had without the break.

    TRL's sampler draws a new order for every epoch from a generator of its own, which no checkpoint
    holds: resumed in its third epoch, a run would go through the prompts in the order of the first.
    """

    def on_train_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        """Draw the orders of the epochs that are over, and throw them away."""
        import torch

        sampler = train_dataloader.get_sampler()
        generator = getattr(sampler, "generator", None)
        if generator is not None:
            for _epoch in range(int(state.epoch or 0)):
                torch.randperm(sampler.num_samples, generator=generator)


class EpochOfSampler(TrainerCallback):  # type: ignore[misc]
    """Tells a sampler that counts its epochs where a resumed run stands."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Epochs that are over are not drawn again."""
        self._sampler.epoch = int(state.epoch or 0)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
