"""Held-out evaluation during training, the best adapter, early stop."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from rewards.search.ranks import on_first_rank
from rewriter.choice import best_of, is_better, means, per_query
from rewriter.evaluation import HEADLINE
from rewriter.held_out import HeldOut, Made
from rewriter.jsonl import append, read
from rewriter.records import by
from rewriter.run_directory import RunDirectory

logger = logging.getLogger(__name__)


class BestAdapter(TrainerCallback):  # type: ignore[misc]
    """Evaluates before the first step and every `evaluation.every` steps; keeps the best adapter.

    "Best" is the highest held-out NDCG@3; with several reward backends, the sum weighted as the
    reward is, for this choice alone: what is reported stays apart for each backend. The raw
    evaluation reward cannot choose: late in training it can rise while retrieval collapses.

    Args:
        held_out: what is evaluated.
        run: where `evaluations.jsonl` and `adapters/` are.
        unwrap: (model) → context manager that gives the model to generate with.
        dispatch: (state, control, logs) → None; sends numbers to every tracker without touching
            the trainer's own running means.
    """

    def __init__(
        self,
        held_out: HeldOut,
        run: RunDirectory,
        unwrap: Callable[[Any], Any],
        dispatch: Callable[..., None],
    ) -> None:
        self._held_out = held_out
        self._run = run
        self._unwrap = unwrap
        self._dispatch = dispatch
        self._every = held_out.config.evaluation.every
        self._history = read(run.evaluations) if run.evaluations.is_file() else []

    @property
    def exhausted(self) -> bool:
        """Whether patience is over."""
        patience, best = self._held_out.config.evaluation.patience, self.best
        return patience is not None and best is not None and self._since(best) >= patience

    @property
    def best(self) -> dict[str, Any] | None:
        """The best evaluation so far; of equal ones the earliest."""
        return best_of(self._history)

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Evaluate the untrained model, unless a resumed run has done so.

        A run that goes on between two evaluations waits for the next one, as it would have done
        without the break: one more could become the best, and would count against patience.
        """
        if not self._history:
            self._evaluate(state, control, model)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Evaluate on the grid and at the end; stop when patience is over."""
        last = state.global_step >= state.max_steps
        if state.global_step % self._every and not last:
            return
        self._evaluate(state, control, model)
        best = self.best
        if self.exhausted and not last and best is not None:
            logger.warning(
                "no better held-out NDCG@3 in %d evaluations; stopping at step %d, best is step %d",
                self._since(best),
                state.global_step,
                best["step"],
            )
            control.should_save = True
            control.should_training_stop = True

    def _since(self, best: Mapping[str, Any]) -> int:
        return sum(row["step"] > best["step"] for row in self._history)

    def _evaluate(self, state: Any, control: Any, model: Any) -> None:
        with self._unwrap(model) as unwrapped:
            made = self._held_out.write(unwrapped)
        parts = list(made.values())[: None if self._held_out.config.prompt.by_backend else 1]
        written = [one for part in parts for one in part.values()]
        found, queries, lost = on_first_rank(lambda: self._judged(made))
        row = {
            "step": state.global_step,
            "score": self._score(found),
            "failures": sum(one.failure is not None for one in written),
            "search_failures": lost,
            "n": len(written),
            **found,
            "queries": queries,
        }
        best = self.best
        self._history.append(row)
        if state.is_world_process_zero:
            if lost:
                logger.warning(
                    "step %d: %d held-out searches failed, retries included; they count nowhere",
                    state.global_step,
                    lost,
                )
            # In this order: a row says that its adapter, if it was the best, is there.
            if best is None or is_better(row, best):
                _save(model, self._run.adapter(state.global_step))
            append(self._run.evaluations, row)
        numbers = {
            f"eval_{backend}_{measure}": value
            for backend, measures in found.items()
            for measure, value in measures.items()
        }
        counts = {"eval_failures": row["failures"], "eval_search_failures": lost}
        self._dispatch(state, control, {**numbers, **counts})

    def _judged(self, made: Made) -> tuple[dict[str, dict[str, float]], dict[str, float], int]:
        """Means, NDCG@3 of each query, and how many searches failed for good."""
        records = self._held_out.records("trained", made)
        values = per_query(records, self._weights(by(records, "backend")))
        return means(records), values, sum(record.failed for record in records)

    def _weights(self, names: Iterable[str]) -> dict[str, float]:
        backends = self._held_out.config.reward.backends
        weights = {name: backends[name].weight for name in names}
        # Else only a function of the user's own is rewarded.
        return weights if any(weights.values()) else dict.fromkeys(weights, 1.0)

    def _score(self, found: Mapping[str, Mapping[str, float]]) -> float:
        weights = self._weights(found)
        score = sum(weights[name] * values[HEADLINE] for name, values in found.items())
        return score / sum(weights.values())


def _save(model: Any, folder: Path) -> None:
    """Save the adapter that trains, and not the copy that TRL keeps as KL reference."""
    import torch

    wrapped = getattr(model, "module", model)
    state = torch.get_rng_state()
    wrapped.save_pretrained(folder, selected_adapters=["default"])
    torch.set_rng_state(state)
