"""Workers in processes of their own, which pretend to train: for tests of how they share.

python -m tests.ablation_workers FOLDER NUMBER SECONDS
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rewriter.ablation.claims import Claim
from rewriter.ablation.items import Item
from rewriter.ablation.state import Outcome, State
from rewriter.ablation.worker import work
from rewriter.config import Config

ITEMS = 12


def items(folder: Path, count: int = ITEMS) -> list[Item]:
    """Runs that nobody trains."""
    values = {"model": {"name": "x"}, "reward": {"backends": "lexical"}, "output": str(folder)}
    config = Config.model_validate(values)
    return [Item(f"run{n}", {"axis": str(n)}, config, f"made{n}", f"e{n}") for n in range(count)]


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that is to come true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def main(folder: Path, number: str, seconds: float) -> None:
    """Do items, each of which takes so many seconds, and write down when they begin and end."""

    def note(what: str) -> None:
        handle = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{what}\n".encode())  # in one piece
        os.close(handle)

    def do(item: Item, claim: Claim) -> Outcome:
        note(f"begin {item.name} {number}")
        time.sleep(seconds)
        note(f"end {item.name} {number}")
        return Outcome("done", item.evaluation)

    work(items(folder), State(folder / "state", beat=0.1, stale=5.0), do, poll=0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
