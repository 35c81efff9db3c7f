"""Panels of reward functions over a backend that finds what its queries say, and what they earn."""

from collections.abc import Mapping, Sequence
from typing import Any

from retrievers.base import Hit, Retriever, SearchError
from rewards import RewardPanel, RewardSettings

Values = list[float | None]


class Fake(Retriever):
    """Text "r2" finds the gold document at rank 2; other texts find it nowhere.

    bad: texts that raise, alone or in a batch. broken: number of coming searches that raise.
    """

    fingerprint = "fake"
    size = 1000

    def __init__(self, backend: str = "lexical", bad: Sequence[str] = (), broken: int = 0) -> None:
        super().__init__()
        self.backend = backend
        self.bad = set(bad)
        self.broken = broken
        self.error: Exception = SearchError("down")
        self.calls: list[list[str]] = []

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        self.calls.append(queries)
        self.broken -= 1
        if self.broken >= 0 or self.bad & set(queries):
            raise self.error
        return [self._ranking(query, k) for query in queries]

    def _ranking(self, query: str, k: int) -> list[Hit]:
        rank = int(query[1:]) if query[:1] == "r" and query[1:].isdigit() else k + 1
        ids = [f"other-{n}" for n in range(1, k + 1)]
        return [Hit("gold" if n == rank else ids[n - 1], -float(n)) for n in range(1, k + 1)]


def panel(
    *retrievers: Retriever, on_step: Any = None, drop_query_id: bool = False, **given: Any
) -> RewardPanel:
    named = {one.backend: one for one in retrievers}
    values = {"backends": list(named), "failure_penalty": 0.0, "backoff_s": 0.0} | given
    settings = RewardSettings.model_validate(values)
    return RewardPanel(named, settings, on_step=on_step, drop_query_id=drop_query_id)


def columns(count: int, **given: Any) -> dict[str, Any]:
    return {
        "query_id": ["q1"] * count,
        "query": ["raw"] * count,
        "relevant": [[{"id": "gold", "grade": 1.0}]] * count,
    } | given


def rewards(panel: RewardPanel, completions: Sequence[Any], **given: Any) -> dict[str, Values]:
    """All functions' values, called one after the other as TRL does."""
    kwargs = columns(len(completions)) | given
    return {
        function.__name__: function(completions=completions, **kwargs)
        for function in panel.functions
    }


def advantages(columns: Mapping[str, Values], weights: Sequence[float]) -> list[float]:
    """TRL 1.16's for one group: None is 0 in the sum, but a row of Nones only is left out."""
    rows = list(zip(*columns.values(), strict=True))
    sums = [
        None
        if all(value is None for value in row)
        else sum(w * (value or 0.0) for w, value in zip(weights, row, strict=True))
        for row in rows
    ]
    known = [one for one in sums if one is not None]
    mean = sum(known) / len(known)
    std = (sum((one - mean) ** 2 for one in known) / (len(known) - 1)) ** 0.5
    return [0.0 if one is None else (one - mean) / (std + 1e-4) for one in sums]


class Log(dict[str, float]):
    """Stands for TRL's log_metric."""

    def __call__(self, name: str, value: float) -> None:
        self[name] = value
