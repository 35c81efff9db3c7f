"""Held-out evaluation during training, the best adapter, early stop."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from retrievers.base import Retriever
from retrievers.conventions import Conventions
from retrievers.queries import Query
from rewards.search.patience import Patience
from rewriter.config import Config
from rewriter.config.conventions import with_primary
from rewriter.evaluation import HEADLINE, EvaluationError, evaluate
from rewriter.generation import Decoding, generate, on_all_ranks, rewrites
from rewriter.prompt import PromptSettings
from rewriter.prompt_systems import PromptSystem
from rewriter.records import Record, Rewrite, by
from rewriter.run_directory import RunDirectory, append

logger = logging.getLogger(__name__)

Made = Mapping[str, Mapping[str, Rewrite]]  # backend → query id → rewrite


@dataclass(frozen=True)
class HeldOut:
    """Evaluates a model on one split, on every reward backend apart.

    Attributes:
        config: of the run.
        tokenizer: the model's.
        queries, qrels: of the split.
        retrievers: backend → retriever.
        decoding: greedy, with the run's token limit.
        split: the split's name.
        groups: query id → by what reports part the queries.
        conventions: how results on the collection are reported.
    """

    config: Config
    tokenizer: Any
    queries: list[Query]
    qrels: Mapping[str, Mapping[str, float]]
    retrievers: Mapping[str, Retriever]
    decoding: Decoding
    split: str
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conventions: Conventions = field(default_factory=Conventions)

    def write(self, model: Any, system: str | None = None) -> Made:
        """Backend → query id → rewrite, each query once, shared out over the ranks.

        Only where the prompt names the backend is there a rewrite for each; else all are the same.

        model: what writes. system: one of `evaluation.prompts`; None: the run's own prompt.
        """
        prompt = self._prompt(system)
        if prompt.by_backend:
            return {name: self._write(model, prompt, name) for name in self.retrievers}
        return self.for_all(self._write(model, prompt, None))

    def for_all(self, made: Mapping[str, Rewrite]) -> Made:
        """The same rewrites for every backend."""
        return dict.fromkeys(self.retrievers, made)

    def _write(self, model: Any, prompt: PromptSettings, backend: str | None) -> dict[str, Rewrite]:
        texts = {query.id: query.text for query in self.queries}
        decoding = self.decoding
        if isinstance(prompt, PromptSystem):
            decoding = replace(decoding, max_new_tokens=prompt.max_new_tokens)

        def work(ids: Any) -> dict[str, Rewrite]:
            conversations = prompt.batch([texts[identity] for identity in ids], backend)
            written = generate(model, self.tokenizer, conversations, decoding)
            return rewrites(written, ids, prompt)

        return on_all_ranks(work, list(texts))

    def records(self, system: str, made: Made) -> list[Record]:
        """Search with the rewrites and judge."""
        return [record for name in self.retrievers for record in self._records(system, made, name)]

    def _records(self, system: str, made: Made, backend: str) -> list[Record]:
        reward = self.config.reward
        return evaluate(
            system,
            made[backend],
            self.queries,
            self.qrels,
            {backend: self.retrievers[backend]},
            measures=with_primary(self.config.evaluation.measures, self.conventions),
            depth=self.config.evaluation.depth,
            split=self.split,
            render=self._prompt(system).search_text,
            groups=self.groups,
            drop_query_id=self.conventions.drop_query_id,
            patience=Patience(reward.retries, reward.backoff_s, reward.max_failures),
        )

    def _prompt(self, system: str | None) -> PromptSettings:
        return self.config.evaluation.prompts.get(system or "", self.config.prompt)


def means(records: list[Record]) -> dict[str, dict[str, float]]:
    """Backend → measure → mean over the queries that count; backends are never averaged."""
    found: dict[str, dict[str, float]] = {}
    for backend, rows in by(records, "backend").items():
        scored = [row.metrics for row in rows if not row.excluded]
        if not scored:
            raise EvaluationError(f"{backend}: every search failed, the last with {rows[-1].error}")
        found[backend] = {key: sum(m[key] for m in scored) / len(scored) for key in scored[0]}
    return found


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
        self._history = _read(run.evaluations)

    @property
    def exhausted(self) -> bool:
        """Whether patience is over."""
        patience, best = self._held_out.config.evaluation.patience, self.best
        return patience is not None and best is not None and self._since(best) >= patience

    @property
    def best(self) -> dict[str, Any] | None:
        """The best evaluation so far; of equal ones the earliest."""
        return max(self._history, key=lambda row: float(row["score"]), default=None)

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Evaluate the untrained model, unless a resumed run has done so."""
        if not any(row["step"] == state.global_step for row in self._history):
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
        found = means(self._held_out.records("trained", made))
        row = {
            "step": state.global_step,
            "score": self._score(found),
            "failures": sum(one.failure is not None for one in written),
            "n": len(written),
            **found,
        }
        best = self.best
        self._history.append(row)
        if state.is_world_process_zero:
            # In this order: a row says that its adapter, if it was the best, is there.
            if best is None or row["score"] > best["score"]:
                _save(model, self._run.adapter(state.global_step))
            append(self._run.evaluations, row)
        numbers = {
            f"eval_{backend}_{measure}": value
            for backend, measures in found.items()
            for measure, value in measures.items()
        }
        self._dispatch(state, control, {**numbers, "eval_failures": row["failures"]})

    def _score(self, found: Mapping[str, Mapping[str, float]]) -> float:
        backends = self._held_out.config.reward.backends
        weights = {name: backends[name].weight for name in found}
        if not any(weights.values()):  # only a function of the user's own is rewarded
            weights = dict.fromkeys(found, 1.0)
        score = sum(weights[name] * values[HEADLINE] for name, values in found.items())
        return score / sum(weights.values())


def _save(model: Any, folder: Path) -> None:
    """Save the adapter that trains, and not the copy that TRL keeps as KL reference."""
    import torch

    wrapped = getattr(model, "module", model)
    state = torch.get_rng_state()
    wrapped.save_pretrained(folder, selected_adapters=["default"])
    torch.set_rng_state(state)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
