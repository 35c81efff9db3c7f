"""What the ranks of a training tell each other: one exchange a step, and what one does for all."""

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


class OtherRankFailed(RuntimeError):
    """Another rank stopped; its own traceback says why."""


def gather(item: T) -> tuple[list[T], int]:
    """Every rank's item, by rank, and this rank's number. Every rank must call it equally often."""
    torch = sys.modules.get("torch")  # not loaded: then there are no other ranks either
    if torch is None or not torch.distributed.is_available():
        return [item], 0
    if not torch.distributed.is_initialized():
        return [item], 0
    everyone: list[T] = [item] * torch.distributed.get_world_size()  # all places are overwritten
    torch.distributed.all_gather_object(everyone, item)
    return everyone, torch.distributed.get_rank()


def exchange(work: Callable[[], T], share: Callable[[T], S]) -> tuple[T, list[S], int]:
    """Do this rank's work and give every rank a share of the result.

    A rank whose work fails comes to the exchange too: were it to raise alone, the others would wait
    for it until the process group's timeout, half an hour later.

    Args:
        work: what this rank does.
        share: what of the result all ranks get; it is pickled.

    Returns:
        This rank's result, the shares by rank, and this rank's number.

    Raises:
        Exception: what `work` raised, on the rank where it did.
        OtherRankFailed: on the other ranks.
    """
    done: list[T] = []
    error: Exception | None = None
    try:
        done.append(work())
    except Exception as caught:  # noqa: BLE001 - raised again below, once the other ranks know
        error = caught
    reason = None if error is None else f"{type(error).__name__}: {error}"
    everyone, rank = gather(([share(result) for result in done], reason))
    if error is not None:
        raise error
    for number, (_, why) in enumerate(everyone):
        if why is not None:
            raise OtherRankFailed(f"rank {number} stopped while searching: {why}")
    return done[0], [shares[0] for shares, _ in everyone], rank


def on_first_rank(work: Callable[[], T]) -> T:
    """Do `work` on the first rank alone, and give every rank its result, which is pickled.

    Were each rank to do it, a search that fails on one of them alone would have them go on with
    other results, and wait for each other for ever.

    Raises:
        Exception: what `work` raised, on the first rank.
        OtherRankFailed: on the other ranks.
    """
    done = exchange(lambda: [work()] if _rank() == 0 else [], lambda found: found)[1]
    return done[0][0]


def _rank() -> int:
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return 0
    return int(torch.distributed.get_rank()) if torch.distributed.is_initialized() else 0
