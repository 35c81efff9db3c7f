"""Going on with a run: what must be as it was, which checkpoint counts, what the logs forget."""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rewriter.records import write_lines

logger = logging.getLogger(__name__)

# What may differ when a run goes on: where it lies, how long it lasts, how it is looked at.
MAY_CHANGE = frozenset(
    {
        "output",
        "index_dir",
        "trainer.max_steps",
        "trainer.num_train_epochs",
        "trainer.report_to",
        "trainer.run_name",
        "evaluation.patience",
        "evaluation.systems",
        "evaluation.bootstrap_samples",
        "threads",
    }
)
LOGS = ("metrics.jsonl", "evaluations.jsonl", "completions*.jsonl", "sampling.jsonl")


class RunError(ValueError):
    """A run that cannot start where it was told to; the message says what to give instead."""


def compare(
    run: Path, config: Mapping[str, Any], facts: Mapping[str, Any], versions: Mapping[str, str]
) -> None:
    """Whether a run can go on with this configuration and these data.

    Args:
        run: its folder.
        config: the resolved configuration.
        facts: name → fingerprint; they must be equal.
        versions: package → version; a difference is said.

    Raises:
        RunError: there is no run, or something differs; the message names it.
    """
    try:
        saved = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
        before = json.loads((run / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(
            f"{run}: nothing to resume ({Path(error.filename).name} is missing); start without "
            "--resume"
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{run}: cannot resume, config.yaml or run.json is damaged ({said}); start a new run"
        ) from error
    _compare_settings(run, dict(_flat(saved)), dict(_flat(config)))
    for name, value in facts.items():
        if before.get(name) != value:
            raise RunError(
                f"{run}: cannot resume, {name} changed since the run began "
                f"({str(before.get(name))[:12]} → {str(value)[:12]}); start a new run"
            )
    known = before.get("versions", {})
    changed = [
        f"{package} {known.get(package)} → {found}"
        for package, found in versions.items()
        if found != known.get(package)
    ]
    if changed:
        logger.warning("other versions than when the run began: %s", ", ".join(changed))


def last_checkpoint(folder: Path, every: int, needed: Sequence[str]) -> Path | None:
    """The newest checkpoint that can be used; newer ones are removed.

    A killed save leaves one that lacks files. The last save of a run may lie in the middle of a
    buffer of rollouts, the rest of which is lost.

    Args:
        folder: of the checkpoints.
        every: steps that a buffer lasts.
        needed: files that it has to hold.
    """
    found = sorted(folder.glob("checkpoint-*"), key=step_of, reverse=True)
    for checkpoint in found:
        whole = _has_state(checkpoint) and all((checkpoint / file).is_file() for file in needed)
        if whole and step_of(checkpoint) % every == 0:
            logger.info("resuming at step %d", step_of(checkpoint))
            return checkpoint
        logger.warning("%s is not whole, or lies within a buffer: removed", checkpoint)
        shutil.rmtree(checkpoint)
    logger.warning("no whole checkpoint in %s: starting at step 0", folder)
    return None


def forget_after(run: Path, step: int) -> None:
    """Drop what was logged after the checkpoint: the resumed run logs it again."""
    for pattern in LOGS:
        for path in run.glob(pattern):
            kept = [line for line, logged in _lines(path) if logged <= step]
            write_lines(kept, path)


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint's name says."""
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _compare_settings(run: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    differ = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    refused = [key for key in differ if key not in MAY_CHANGE]
    for key in differ:
        if key in MAY_CHANGE:
            logger.warning("%s changed: was %r, is %r", key, old.get(key), new.get(key))
    if refused:
        named = ", ".join(f"{key} (was {old.get(key)!r}, is {new.get(key)!r})" for key in refused)
        raise RunError(f"{run}: cannot resume with another configuration: {named}")


def _has_state(checkpoint: Path) -> bool:
    """The trainer writes `trainer_state.json` after weights, optimizer and random states."""
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return bool(state.get("global_step") == step_of(checkpoint))


def _lines(path: Path) -> Iterator[tuple[str, int]]:
    """Lines of a log with their step; a last line that a kill cut short is left out."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            try:
                yield line.rstrip("\n"), int(json.loads(line)["step"])
            except (ValueError, KeyError):
                continue


def _flat(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, values
