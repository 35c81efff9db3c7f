"""What happens around the optimizer: held-out evaluation, logs, progress, checks."""

import math
import time
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from rewards.search import StepScores
from rewriter.run_directory import RunDirectory, append

__all__ = ["AdapterGuard", "Journal", "Progress"]


class FrozenAdapterError(RuntimeError):
    """The adapter does not train; going on would end with a finished run that learnt nothing."""


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


class AdapterGuard(TrainerCallback):  # type: ignore[misc]
    """Stops a run whose adapter cannot learn: loaded frozen, wrapped twice, not in the optimizer.

    Before the first step some LoRA weight must be in the optimizer. At the first step with a
    learning rate above 0 and a gradient other than 0, a LoRA weight must change.
    """

    def __init__(self) -> None:
        self._before: dict[str, Any] | None = None
        self._watching = False
        self.proved = False

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: Any,
    ) -> None:
        """Look for trainable adapter weights in the optimizer."""
        trainable = {name for name, weight in model.named_parameters() if weight.requires_grad}
        if not any("lora_" in name for name in trainable):
            raise FrozenAdapterError(
                "no LoRA weight is trainable: the adapter was loaded frozen; start from it with "
                "`model.adapter`, which loads it for training"
            )
        if optimizer is None or not hasattr(optimizer, "param_groups"):
            return
        held = sum(weight.numel() for group in optimizer.param_groups for weight in group["params"])
        if held == 0:
            raise FrozenAdapterError("the optimizer holds no weight; nothing would be trained")

    def on_pre_optimizer_step(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: Any,
    ) -> None:
        """Remember the adapter if this step has to change it."""
        if self.proved:
            return
        weights = _adapter(model)
        rate = max((group["lr"] for group in optimizer.param_groups), default=0.0)
        moved = any(w.grad is not None and bool(w.grad.any()) for w in weights.values())
        self._watching = rate > 0 and moved
        if self._watching:
            self._before = {name: weight.detach().clone() for name, weight in weights.items()}

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Compare the adapter with what it was."""
        if not self._watching or self._before is None:
            return
        before, self._before, self._watching = self._before, None, False
        if all(bool((weight == before[name]).all()) for name, weight in _adapter(model).items()):
            raise FrozenAdapterError(
                f"step {state.global_step} left every LoRA weight as it was, although there was a "
                "gradient: the optimizer holds other weights than the model uses"
            )
        self.proved = True


def _adapter(model: Any) -> dict[str, Any]:
    return {n: w for n, w in model.named_parameters() if "lora_" in n and w.requires_grad}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
