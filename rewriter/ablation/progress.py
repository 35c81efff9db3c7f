"""How far a grid is, what it will cost, and how long the rest takes."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rewriter.ablation.items import Item
from rewriter.ablation.state import State

logger = logging.getLogger(__name__)


class Progress:
    """Says after each end how many are over, and when the rest will be.

    Args:
        items: of the grid.
        state: its folder.
        step_seconds: item's name → measured time of one of its steps; absent: unknown.
    """

    def __init__(
        self, items: Sequence[Item], state: State, step_seconds: Mapping[str, float]
    ) -> None:
        self._items = items
        self._state = state
        self._steps = step_seconds

    def say(self, last: Item) -> None:
        """Log one line."""
        ended = [found for item in self._items if (found := self._state.outcome(item)) is not None]
        failed = sum(one.status == "failed" for one in ended)
        left = self.left()
        logger.info(
            "%d of %d done%s, after %s%s",
            len(ended) - failed,
            len(self._items),
            f", {failed} failed" if failed else "",
            last.name,
            f"; about {duration(left)} left" if left else "",
        )

    def left(self) -> float | None:
        """Seconds until all is over, shared by the workers at work; None if nobody can say.

        Those who hold something are at work, and who asks: it is between two runs.
        """
        outcomes = {item.name: self._state.outcome(item) for item in self._items}
        open_ones = [item for item in self._items if outcomes[item.name] is None]
        costs = [self._cost(item) for item in open_ones]
        if not open_ones or any(cost is None for cost in costs):
            return None
        held = sum(self._state.claims.held(item.name) for item in open_ones)
        workers = min(len(open_ones), held + 1)
        return sum(cost for cost in costs if cost is not None) / workers

    def _cost(self, item: Item) -> float | None:
        """As long as those that are over took for each step, else the steps alone."""
        own = [
            (found.seconds, one.steps)
            for one in self._items
            if (found := self._state.outcome(one)) is not None
            and found.status == "done"
            and found.seconds  # of all of it
            and one.steps
        ]
        if item.steps is None:
            return None
        if own and item.steps:
            return item.steps * sum(s for s, _ in own) / sum(steps for _, steps in own if steps)
        seconds = self._steps.get(item.name)
        if not item.steps:
            return 0.0
        return None if seconds is None else item.steps * seconds


def costs(
    items: Sequence[Item],
    state: State,
    step_seconds: Mapping[str, float],
    reused: Mapping[str, Path],
    *,
    retry: bool = False,
) -> Iterator[str]:
    """A line for each item, and the sum: what `--dry-run` shows.

    Args:
        items, state: of the grid.
        step_seconds: see `Progress`.
        reused: item's name → the finished run that stands in for its training.
        retry: whether what failed is tried again.
    """
    width = max(len(item.name) for item in items)
    total, unknown = 0.0, 0
    for item in items:
        found = state.outcome(item)
        if found is not None and not (retry and found.status == "failed"):
            yield f"{item.name:{width}}  {found.status}"
        elif item.name in reused:
            yield f"{item.name:{width}}  evaluation only: trained in {reused[item.name]}"
        elif not item.trains:
            yield f"{item.name:{width}}  evaluation only"
        elif item.steps is None:
            unknown += 1
            yield f"{item.name:{width}}  as many steps as its epochs have; set trainer.max_steps"
        elif item.name not in step_seconds:
            unknown += 1
            yield f"{item.name:{width}}  {item.steps} steps, no step of this size measured yet"
        else:
            seconds = step_seconds[item.name]
            total += item.steps * seconds
            cost = duration(item.steps * seconds)
            yield f"{item.name:{width}}  {item.steps} steps × {seconds:.1f} s = {cost}"
    runs = sum(item.trains for item in items)
    more = f", and {unknown} of unknown cost (give --step_time SECONDS)" if unknown else ""
    on_top = "evaluations and warm starts come on top"
    yield f"{runs} runs: {duration(total)} of training steps{more}; {on_top}"


def duration(seconds: float) -> str:
    """2 h 05 min, 7 min, 40 s"""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min" if minutes else f"{round(seconds)} s"
