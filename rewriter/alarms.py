"""Alarms: what usually precedes a ruined run, said while it can still be stopped."""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import TrainerCallback

from rewards.search import RowScores, StepScores
from rewards.texts import repetition, scripts
from rewriter.config import AlarmSettings
from rewriter.jsonl import append, read
from rewriter.run_directory import RunDirectory

logger = logging.getLogger(__name__)


class Alarms(TrainerCallback):  # type: ignore[misc]
    """Watches rewards and rewrites; each alarm is logged once a `window` of steps.

    Attributes:
        raised: every alarm so far, (step, name, message).
    """

    def __init__(self, settings: AlarmSettings, run: RunDirectory) -> None:
        self._settings = settings
        self._run = run
        self._rewards: deque[float] = deque(maxlen=settings.window)
        self._flat: deque[float] = deque(maxlen=settings.window)
        self._best = 0.0
        self._last: dict[str, int] = {}
        self.raised: list[tuple[int, str, str]] = []
        self._remember()

    def _remember(self) -> None:
        """A resumed run goes on with what it saw before, and does not say everything again."""
        if not self._run.metrics.is_file():
            return
        for row in read(self._run.metrics):
            if "alarm" in row:
                self._last[row["alarm"]] = row["step"]
            elif row.get("reward") is not None:
                self._see(row)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
    ) -> None:
        """Watch the mean reward and the share of groups without a signal."""
        if not state.is_world_process_zero or logs.get("reward") is None:
            return
        seen = self._see(logs)
        if seen is None:
            return
        mean, flat = seen
        if self._best > 0 and mean < (1 - self._settings.reward_drop) * self._best:
            self._raise(
                state.global_step, "reward", f"{mean:.3f}, was {self._best:.3f} at its best"
            )
        if flat > self._settings.no_signal:
            reason = (
                f"{flat:.0%} of the groups have equal rewards ({_kinds(logs)}) and teach nothing; "
                "try reward.kind rank, a larger k, or more generations"
            )
            self._raise(state.global_step, "no_signal", reason)

    def _see(self, logs: Mapping[str, Any]) -> tuple[float, float] | None:
        """Means of reward and of groups without a signal, once the window is full."""
        self._rewards.append(float(logs["reward"]))
        if logs.get("groups/equal_reward") is not None:  # a step of failed searches has none
            self._flat.append(float(logs["groups/equal_reward"]))
        if len(self._rewards) < self._settings.window:
            return None
        mean = sum(self._rewards) / len(self._rewards)
        self._best = max(self._best, mean)
        return mean, sum(self._flat) / max(len(self._flat), 1)

    def watch(self, scores: StepScores) -> None:
        """Look at one step's rewrites."""
        step = (scores.step or 0) + 1
        written = [row for row in scores.rows if row.parsed.text]
        if not written:
            return
        texts = [row.parsed.text or "" for row in written]
        length = sum(map(len, texts)) / len(texts)
        repeats = sum(map(repetition, texts)) / len(texts)
        foreign = sum(foreign_script(row) for row in written) / len(written)
        if length > self._settings.length:
            self._raise(step, "length", f"rewrites have {length:.0f} characters on average")
        self._watch_pastes(step, written)
        if repeats > self._settings.repetition:
            self._raise(step, "repetition", f"{repeats:.0%} of the text repeats itself")
        if foreign > self._settings.foreign_script:
            self._raise(
                step, "foreign_script", f"{foreign:.0%} of the letters are in another script"
            )

    def _watch_pastes(self, step: int, rows: Sequence[RowScores]) -> None:
        """One long text is noise while it earns nothing; a page that is pasted does earn."""
        paid = (row for row in rows if any((value or 0) > 0 for value in row.rewards.values()))
        longest = max((len(row.parsed.text or "") for row in paid), default=0)
        if longest > self._settings.length:
            self._raise(step, "length", f"a rewrite of {longest} characters was rewarded")

    def _raise(self, step: int, name: str, message: str) -> None:
        if step - self._last.get(name, -self._settings.window) < self._settings.window:
            return
        self._last[name] = step
        self.raised.append((step, name, message))
        logger.warning("alarm at step %d: %s: %s", step, name, message)
        append(self._run.metrics, {"step": step, "alarm": name, "message": message})


def foreign_script(row: RowScores) -> float:
    """Share of a rewrite's letters in scripts that its query does not use."""
    own = set(scripts(row.query))
    used = scripts(row.parsed.text or "")
    # A query without letters has no script that a rewrite could leave.
    return sum(script not in own for script in used) / len(used) if own and used else 0.0


def _kinds(logs: Mapping[str, Any]) -> str:
    """What the groups without a signal are, backend by backend, in the last step."""
    shares = (
        f"{key.replace('/', ' ').replace('_', ' ')} {value:.0%}"
        for key, value in logs.items()
        if key.endswith(("/all_hit", "/all_miss")) and value is not None
    )
    return ", ".join(shares) or "all hit or all miss"
