"""`sampling: informative`: prompts whose last group taught nothing are drawn less often.

A group teaches nothing where every search came out alike: all hit, or all missed. A prompt is drawn
with a weight that stands for the chance that its next group teaches:

    1       its last group's searches differed
    s       it was never drawn; s is the share of groups so far whose searches differed
    s / 4   its last group's searches were all alike

What a generation batch holds depends on the seed, its number, and the groups of the batches before
it that are over when the trainer fetches it, some steps ahead. Those groups are in `sampling.jsonl`
of the run's folder, so that a resumed run draws what an unbroken one would have drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.search import StepScores
from rewards.shaping import Group, by_group, differs
from rewriter.jsonl import append, read
from rewriter.run_directory import RunDirectory

ALIKE = 4  # divides the weight of a prompt that taught nothing

Groups = dict[int, bool]  # place of the prompt → whether the searches of its group differed


class SamplingLogError(ValueError):
    """`sampling.jsonl` lacks batches that the run has had."""


class GroupLog:
    """What became of every generation batch so far, in memory and in `sampling.jsonl`.

    Args:
        run: its folder; what is there already is read.
        rows: of the training set.
        backends: all that the reward names, in its order.
        writes: whether this rank writes the file.
    """

    def __init__(
        self,
        run: RunDirectory,
        rows: Sequence[Mapping[str, Any]],
        backends: Sequence[str],
        *,
        writes: bool,
    ) -> None:
        self._path = run.sampling
        self._writes = writes
        self._places: dict[Group, int] = {
            (str(row["query_id"]), *(name for name in backends if name in _named(row, backends))): n
            for n, row in enumerate(rows)
        }
        self.batches: list[Groups] = []
        if self._path.is_file():
            for row in read(self._path):
                groups = row["groups"].items()
                self.batches.append({int(place): taught for place, taught in groups})

    def watch(self, scores: StepScores) -> None:
        """Note one generation batch; groups whose searches failed say nothing."""
        groups = {
            self._places[group[0].group]: differs(group) for group in by_group(scores.outcomes)
        }
        self.batches.append(groups)
        if self._writes:
            # The reward is computed before the step is counted.
            append(self._path, {"step": (scores.step or 0) + 1, "groups": groups})


class InformativeSampler:
    """Stands in for TRL's RepeatSampler: indices of one process's dataloader, epoch after epoch.

    Args:
        log: of the groups so far.
        rows: number of prompts.
        size: distinct prompts of a generation batch.
        generations: completions of each prompt.
        repeats: dataloader batches for which one generation batch is used.
        seed: of the draws.
        accumulation: dataloader batches that the trainer fetches at once, for one step.
        ahead: batches that are fetched before they are asked for.

    Attributes:
        epoch: of the next iteration.
    """

    def __init__(
        self,
        log: GroupLog,
        *,
        rows: int,
        size: int,
        generations: int,
        repeats: int,
        seed: int,
        accumulation: int,
        ahead: int = 1,
    ) -> None:
        self._log = log
        self._rows = rows
        self._size = size
        self._generations = generations
        self._repeats = repeats
        self._seed = seed
        self._accumulation = accumulation
        self._ahead = ahead
        self.epoch = 0

    def __len__(self) -> int:
        return self._batches * self._size * self._generations * self._repeats

    def __iter__(self) -> Iterator[int]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        for batch in range(self._batches):
            chosen = self.draw(epoch * self._batches + batch, self._over(epoch, batch))
            for _ in range(self._repeats):
                for place in chosen:
                    yield from [place] * self._generations

    @property
    def _batches(self) -> int:
        return self._rows // self._size

    def _over(self, epoch: int, batch: int) -> int:
        """Batches that are over at the earliest moment at which this one may be fetched.

        The trainer fetches all batches of a step when it begins, and `ahead` more; those that are
        over are the ones that a step before it has begun with.
        """
        first = batch * self._repeats - self._accumulation + 1 - self._ahead
        steps = max(0, ceil(first / self._accumulation))
        return epoch * self._batches + ceil(steps * self._accumulation / self._repeats)

    def draw(self, number: int, over: int) -> list[int]:
        """The prompts of a batch, drawn without replacement.

        Args:
            number: of the batch, counted from the run's first.
            over: batches whose groups are looked at.

        Raises:
            SamplingLogError: not all of them are known.
        """
        if over > len(self._log.batches):
            raise SamplingLogError(
                f"batch {number} is drawn by the groups of {over} batches, and sampling.jsonl has "
                f"{len(self._log.batches)}; put the whole file back, or start a new run"
            )
        weights = self._weights(self._log.batches[:over])
        # Efraimidis and Spirakis, 2006: the largest of u ** (1 / weight).
        drawn = np.log(np.random.default_rng([self._seed, number]).random(self._rows)) / weights
        order = np.argsort(-drawn, kind="stable")[: self._size]
        return [int(place) for place in order]

    def _weights(self, batches: Sequence[Groups]) -> NDArray[np.float64]:
        """(rows,) see the head of this file; with one of each kind added, no weight is 0."""
        taught = [value for groups in batches for value in groups.values()]
        share = (sum(taught) + 1) / (len(taught) + 2)
        weights = np.full(self._rows, share)
        for groups in batches:
            for place, differed in groups.items():
                weights[place] = 1.0 if differed else -1.0
        weights[weights < 0] = share / ALIKE
        return weights


def _named(row: Mapping[str, Any], backends: Sequence[str]) -> Sequence[str]:
    named: Sequence[str] | None = row.get("backends")
    return backends if named is None else named
