"""Completions -> rewrites -> one batched search a backend -> rewards, once a step.

TRL calls each reward function on its own and adds up what they return; a None counts as 0 there
unless every function returned None for the row. So the functions of a panel share one scoring: the
first one called does the work, the others hand out their column of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from retrievers.base import CacheInfo, Retriever
from rewards.parsing import Completion
from rewards.search.backend import Backend
from rewards.search.own import OwnFunction
from rewards.search.ranks import exchange
from rewards.search.rows import RowReader
from rewards.search.scoring import Render, Scored, Scorer, Values
from rewards.search.step import StepScores, cache_rate, equal_share, group_shares, parse_counts
from rewards.settings import RewardSettings
from rewards.shaping import Outcome, format_terms

FORMAT = "format"


@dataclass(eq=False)
class PanelFunction:
    """One TRL reward function: a named column of its panel's scoring."""

    panel: "RewardPanel" = field(repr=False)
    __name__: str

    def __call__(self, completions: Sequence[Completion], **columns: Any) -> Values:
        """(R,) rewards of R completions; see `RewardPanel`."""
        return self.panel.column(self.__name__, completions, columns)


class RewardPanel:
    """TRL reward functions that search: `GRPOTrainer(reward_funcs=panel.functions, ...)`.

    A data set row has `prompt`, `query_id`, `query` (the raw query), `relevant` (a list of
    {"id", "grade"}) and, optionally, `backends` (names of those that apply to this prompt).

    Args:
        retrievers: backend -> retriever, for all backends in the settings.
        settings: what is rewarded.
        render: (query, rewrite) -> search text; the rewrite alone if None.
        answer_tag: see `rewards.parsing.parse`.
        on_step: called with every step's scores, on every rank with its own.
        drop_query_id: leave out a hit whose id is the query's, as the evaluation then does.

    Attributes:
        functions: one a backend, in the settings' order, named as `RewardSettings.label` says; then
            `format`, if it can be other than 0; then the user's own.
        weights: of the functions, for `GRPOConfig.reward_weights`.

    Raises:
        ValueError: a backend has no retriever.
        rewards.settings.RewardFunctionError: the user's function cannot be used.

    A function returns one value a completion. An unparsed completion scores 0. Where the search of
    any applying backend failed, after retries, every function returns None; so does a backend's
    function where the backend does not apply. The functions raise:

        rewards.search.RewardInputError: a column is missing or a row cannot be rewarded.
        retrievers.base.PermanentSearchError: a search cannot succeed, or too many failed in a row.
        rewards.search.OtherRankFailed: another rank raised one of these.
    """

    def __init__(
        self,
        retrievers: Mapping[str, Retriever],
        settings: RewardSettings,
        *,
        render: Render | None = None,
        answer_tag: str | None = None,
        on_step: Callable[[StepScores], None] | None = None,
        drop_query_id: bool = False,
    ) -> None:
        self.settings = settings
        self._backends = [
            Backend(name, _retriever(retrievers, name), settings, drop_query_id)
            for name in settings.backends
        ]
        names = [backend.label for backend in self._backends]
        self._shapes = settings.failure_penalty > 0 or settings.length_weight > 0
        names += [FORMAT] if self._shapes else []
        self._own = OwnFunction.of(settings, taken=names)
        names += [self._own.name] if self._own else []
        self.functions = [PanelFunction(self, name) for name in names]
        weights = [backend.reward.weight for backend in self._backends]
        self.weights = weights + [1.0] * (len(names) - len(weights))
        reader = RowReader(tuple(settings.backends), answer_tag, idle=self._own is not None)
        self._score = Scorer(self._backends, reader, render)
        self._on_step = on_step
        self._key = ""
        self._columns: dict[str, Values] = {}

    def column(
        self, name: str, completions: Sequence[Completion], columns: Mapping[str, Any]
    ) -> Values:
        """One function's values; what is new is scored first.

        Equal content is not enough to be the same step: a collapsed policy repeats itself, and a
        rank that skipped the exchange would leave the others waiting. So each column is handed out
        once, and the next call starts anew.
        """
        data = sorted((key, value) for key, value in columns.items() if isinstance(value, list))
        key = repr((completions, data))
        if key != self._key or name not in self._columns:
            self._columns = self._step(completions, columns)
            self._key = key
        return self._columns.pop(name)

    def _step(
        self, completions: Sequence[Completion], columns: Mapping[str, Any]
    ) -> dict[str, Values]:
        started = perf_counter()
        caches = [backend.retriever.cache_info() for backend in self._backends]
        scored, everything, terms = self._shared(completions, columns)
        metrics = self._metrics(scored, everything, caches) | equal_share(everything, terms)
        metrics["search/reward_seconds"] = perf_counter() - started
        log_metric = columns.get("log_metric")
        if log_metric is not None:
            for name, value in metrics.items():
                log_metric(name, value)
        if self._on_step is not None:
            step = getattr(columns.get("trainer_state"), "global_step", None)
            self._on_step(StepScores(scored.shown(), metrics, step, everything))
        return scored.columns

    def _shared(
        self, completions: Sequence[Completion], columns: Mapping[str, Any]
    ) -> tuple[Scored, list[Outcome], list[float | None]]:
        """This rank's scores, complete; of all ranks' rows the outcomes and the format terms."""
        scored, everyone, rank = exchange(
            lambda: self._local(completions, columns), lambda local: local.outcomes
        )
        everything = [outcome for outcomes in everyone for outcome in outcomes]
        terms: list[float | None] = [0.0] * len(everything)
        if self._shapes:
            start = sum(len(outcomes) for outcomes in everyone[:rank])
            terms = format_terms(
                everything,
                failure_penalty=self.settings.failure_penalty,
                length_weight=self.settings.length_weight,
            )
            scored.columns[FORMAT] = terms[start : start + len(scored.rows)]
        return scored, everything, terms

    def _local(self, completions: Sequence[Completion], columns: Mapping[str, Any]) -> Scored:
        scored = self._score(completions, columns)
        if self._own is not None:
            values = self._own(scored, completions, columns)
            scored.columns[self._own.name] = values
            pairs = zip(scored.outcomes, values, strict=True)
            scored.outcomes[:] = [replace(one, own=value) for one, value in pairs]
        return scored

    def _metrics(
        self, scored: Scored, everything: list[Outcome], caches: list[CacheInfo]
    ) -> dict[str, float]:
        metrics = {
            "search/failures": float(sum(scored.failed)),
            "search/distinct_texts": float(scored.distinct),
            **parse_counts(row.parsed for row in scored.rows),
        }
        for backend, before in zip(self._backends, caches, strict=True):
            metrics |= group_shares(everything, backend.name)
            metrics |= cache_rate(backend.name, before, backend.retriever.cache_info())
        return metrics


def _retriever(retrievers: Mapping[str, Retriever], name: str) -> Retriever:
    if name in retrievers:
        return retrievers[name]
    raise ValueError(
        f"reward.backends names {name!r}, but the retrievers are {', '.join(retrievers) or 'none'};"
        " configure it, or take it out of the reward"
    )
