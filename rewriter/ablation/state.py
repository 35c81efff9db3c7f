"""The state folder of a grid.

runs/ablations/backends/
    configs/NAME.yaml   the resolved configuration of each run
    runs/NAME/          its training, a folder as any other run's
    evals/NAME/         its evaluation, a folder of `rlqr eval`
    outcomes/NAME.json  written once a run is over: done or failed
    claims/             which worker does what
    logs/NAME.log       what its processes said
    matrix.json …       the results, see results.py
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rewriter.ablation.claims import BEAT, STALE, Claim, Claims
from rewriter.ablation.items import Item
from rewriter.records import write_lines


@dataclass(frozen=True)
class Outcome:
    """How an item ended.

    Attributes:
        status: "done" or "failed".
        evaluation: fingerprint of what was done, see `Item`; another one counts as not done.
        stage, error: where and why it failed.
        run: the folder of the training that counts, reused or its own.
        reused: whether it was trained before, elsewhere.
        seconds: of training and evaluation; 0 where a part of it was done before.
        data: fingerprints of what was evaluated on, where nothing was trained; those of a run are
            in its own folder.
    """

    status: Literal["done", "failed"]
    evaluation: str
    stage: str | None = None
    error: str | None = None
    run: str | None = None
    reused: bool = False
    seconds: float = 0.0
    data: dict[str, Any] | None = None


class State:
    """Paths, outcomes and claims.

    Args:
        path: the folder.
        beat, stale: see `Claims`.
    """

    def __init__(self, path: str | Path, *, beat: float = BEAT, stale: float = STALE) -> None:
        self.path = Path(path)
        self.claims = Claims(self.path / "claims", beat=beat, stale=stale)

    def config(self, item: Item) -> Path:
        """Where its resolved configuration is written."""
        return self.path / "configs" / f"{item.name}.yaml"

    def log(self, item: Item) -> Path:
        """What its processes say."""
        return self.path / "logs" / f"{item.name}.log"

    def run(self, item: Item) -> Path:
        """The folder of its own training."""
        return Path(item.config.output)

    def evaluation(self, item: Item) -> Path:
        """The folder of its evaluation."""
        return self.path / "evals" / f"{item.name}-{item.evaluation[:8]}"

    def outcome(self, item: Item) -> Outcome | None:
        """How it ended; None while it is open."""
        try:
            text = self._outcome(item).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        found = Outcome(**json.loads(text))
        return found if found.evaluation == item.evaluation else None

    def end(self, item: Item, outcome: Outcome) -> None:
        """Write how it ended."""
        write_lines([json.dumps(asdict(outcome), indent=2)], self._outcome(item))

    def forget_failures(self, items: Sequence[Item]) -> None:
        """Have what failed tried again."""
        for item in items:
            found = self.outcome(item)
            if found is not None and found.status == "failed":
                self._outcome(item).unlink(missing_ok=True)  # several workers may be told to

    def claim(self, item: Item) -> Claim | None:
        """Claim an open item; None if it is over or another worker has it."""
        if self.outcome(item) is not None:
            return None
        claim = self.claims.claim(item.name, item.config.threads)
        if claim is not None and self.outcome(item) is not None:  # ended a moment ago
            claim.release()
            return None
        return claim

    def _outcome(self, item: Item) -> Path:
        return self.path / "outcomes" / f"{item.name}.json"
