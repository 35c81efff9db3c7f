"""The reward for a training script of one's own: one backend, one function."""

from collections.abc import Callable, Sequence
from typing import Any

from retrievers.base import Retriever
from rewards.parsing import Completion
from rewards.search.panel import RewardPanel
from rewards.search.scoring import Render, Values
from rewards.search.step import StepScores
from rewards.settings import Kind, RewardSettings


class SearchReward:
    """A TRL reward function that searches: `GRPOTrainer(model, SearchReward(retriever), ...)`.

    A data set row has `prompt`, `query_id`, `query` (the raw query) and `relevant` (a list of
    {"id", "grade"}). For several backends, or beside another reward function, use `RewardPanel`:
    TRL adds up what functions return, and only a panel can say in all of them that a row has none.

    Args:
        retriever: what is searched.
        kind, k, gain: see `rewards.settings.BackendReward`.
        render: (query, rewrite) -> search text; the rewrite alone if None.
        answer_tag: see `rewards.parsing.parse`.
        on_step: called with every step's scores.
        further: `retries`, `backoff_s`, `max_failures` and `depth_rank` of `RewardSettings`.

    Attributes:
        __name__: what TRL logs it under: "lexical_ndcg@3".

    Raises:
        pydantic.ValidationError: a setting that does not exist or does not fit.
        ValueError: a setting that needs a second function.
    """

    def __init__(
        self,
        retriever: Retriever,
        kind: Kind = "ndcg",
        k: int = 3,
        gain: bool = False,
        *,
        render: Render | None = None,
        answer_tag: str | None = None,
        on_step: Callable[[StepScores], None] | None = None,
        **further: float,
    ) -> None:
        if "backends" in further:
            raise ValueError(
                "backends: SearchReward has its retriever; for several use RewardPanel"
            )
        name = retriever.backend
        settings = RewardSettings.model_validate(
            # A panel of one has one function: without a penalty there is no `format` beside it.
            {"failure_penalty": 0.0, **further}
            | {"backends": name, "kind": kind, "k": k, "gain": gain}
        )
        panel = RewardPanel(
            {name: retriever}, settings, render=render, answer_tag=answer_tag, on_step=on_step
        )
        if len(panel.functions) != 1:
            raise ValueError(
                f"{', '.join(further)}: SearchReward is one function only; for format terms or a "
                "function of your own beside it use RewardPanel"
            )
        self._function = panel.functions[0]
        self.__name__ = self._function.__name__

    def __call__(self, completions: Sequence[Completion], **columns: Any) -> Values:
        """(R,) rewards of R completions, None where the search failed; see `RewardPanel`."""
        return self._function(completions, **columns)
