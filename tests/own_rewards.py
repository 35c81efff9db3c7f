"""Reward functions that tests name as `reward.function`."""

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

# The step in which `dies` gives up; set by tests that run in this process.
die_in: int | None = None


class Crash(BaseException):
    """Not an Exception, so that nothing may catch it, as nothing catches a kill."""


def constant(completions: Sequence[Any], **_: Any) -> list[float]:
    """Every completion earns the same."""
    return [5.0] * len(completions)


def seven_words(rewrites: Sequence[str | None], **_: Any) -> list[float]:
    """A seventh for each word of the rewrite."""
    return [len((rewrite or "").split()) / 7 for rewrite in rewrites]


def one_or_nothing(rewrites: Sequence[str | None], **_: Any) -> list[float | None]:
    """1 for a rewrite, nothing without one."""
    return [None if rewrite is None else 1.0 for rewrite in rewrites]


def dies(completions: Sequence[Any], trainer_state: Any, **_: Any) -> list[float]:
    """Nothing is earned; in one step the process ends, by an error or, on request, by SIGKILL."""
    step = trainer_state.global_step + 1
    if step == die_in:
        raise Crash
    if str(step) == os.environ.get("RLQR_TEST_KILL_IN"):
        os.kill(os.getpid(), signal.SIGKILL)
    return [0.0] * len(completions)


def raises_on_rank_1(completions: Sequence[Any], **_: Any) -> list[float]:
    """An error on the second of two ranks, with the time at which it was raised."""
    if os.environ["RANK"] == "1":
        raise ZeroDivisionError(f"only on rank 1 at {time.time()}")
    return [0.0] * len(completions)
