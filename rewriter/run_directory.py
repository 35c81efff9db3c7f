"""The folder of one run: who may write into it, what it is made of, where a resume begins.

runs/demo/
    config.yaml         the resolved configuration
    run.json            data fingerprints, versions, git commit
    metrics.jsonl       every logged number; alarms too
    evaluations.jsonl   one line for each held-out evaluation
    completions.jsonl   every completion of the training, with what the search made of it
    checkpoints/        the trainer's own, for --resume
    adapters/           the adapter of each evaluation that was the best so far
    best/               the result: adapter, tokenizer, prompt, model card, manifest
    records.jsonl       one record for each (system, backend, query) of the final evaluation
    result.json         means and intervals of those records
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from rewriter.config import Config
from rewriter.records import write_lines
from rewriter.yaml_source import ConfigError

PACKAGES = ("trl", "transformers", "peft", "accelerate", "torch", "datasets", "rank-bm25", "bm25s")
# What may differ when a run goes on: how long it lasts and how it is looked at.
MAY_CHANGE = frozenset(
    {
        "trainer.max_steps",
        "trainer.num_train_epochs",
        "trainer.report_to",
        "trainer.run_name",
        "evaluation.systems",
        "evaluation.bootstrap_samples",
        "threads",
    }
)
_LOGS = ("metrics.jsonl", "evaluations.jsonl", "completions*.jsonl")


class RunError(ValueError):
    """A run that cannot start where it was told to; the message says what to give instead."""


class RunDirectory:
    """Paths of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.adapters = self.path / "adapters"
        self.best = self.path / "best"
        self.metrics = self.path / "metrics.jsonl"
        self.evaluations = self.path / "evaluations.jsonl"
        self.records = self.path / "records.jsonl"
        self.result = self.path / "result.json"

    def completions(self, rank: int) -> Path:
        """The completions log of a rank: each rank writes what it has seen."""
        return self.path / ("completions.jsonl" if rank == 0 else f"completions.rank{rank}.jsonl")

    def prepare(self, config: Config, facts: Mapping[str, Any], resume: bool) -> Path | None:
        """Write `config.yaml` and `run.json`, or compare with those there.

        Args:
            config: the resolved configuration.
            facts: data fingerprints; a resumed run must have the same.
            resume: whether to go on with what is there.

        Returns:
            The checkpoint to resume from; None starts at step 0.

        Raises:
            RunError: the folder is in use, there is nothing to resume, or config or data differ.
        """
        if resume:
            self._compare(config, facts)
            checkpoint = self._last_checkpoint()
            self._forget_after(_step(checkpoint) if checkpoint else 0)
            return checkpoint
        if self.path.exists() and any(self.path.iterdir()):
            raise RunError(
                f"{self.path} holds a run already; add --resume to go on with it, "
                f"--overwrite {self.path} to replace it, or choose another with --output"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_lines([config.to_yaml().rstrip()], self.path / "config.yaml")
        facts = {**facts, "versions": versions(), "git_commit": git_commit()}
        write_lines([json.dumps(facts, indent=2)], self.path / "run.json")
        return None

    def clear(self) -> None:
        """Remove an earlier run. Refuses a folder that is none.

        Raises:
            RunError: there are files, but no `run.json`.
        """
        if not self.path.exists():
            return
        if any(self.path.iterdir()) and not (self.path / "run.json").is_file():
            raise RunError(
                f"{self.path} holds files, but no run.json: it is not a run's folder, and is left "
                "alone; remove it yourself or choose another with --output"
            )
        shutil.rmtree(self.path)

    def _compare(self, config: Config, facts: Mapping[str, Any]) -> None:
        try:
            saved = yaml.safe_load((self.path / "config.yaml").read_text(encoding="utf-8"))
            before = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunError(
                f"{self.path}: nothing to resume ({Path(error.filename).name} is missing); start "
                "without --resume"
            ) from error
        old, new = dict(_flat(saved)), dict(_flat(config.dump()))
        differ = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        refused = [key for key in differ if key not in MAY_CHANGE]
        if refused:
            named = ", ".join(
                f"{key} (was {old.get(key)!r}, is {new.get(key)!r})" for key in refused
            )
            raise RunError(f"{self.path}: cannot resume with another configuration: {named}")
        for name, value in facts.items():
            if before.get(name) != value:
                raise RunError(
                    f"{self.path}: cannot resume, {name} changed since the run began "
                    f"({str(before.get(name))[:12]}… → {str(value)[:12]}…); start a new run"
                )
        write_lines([config.to_yaml().rstrip()], self.path / "config.yaml")

    def _last_checkpoint(self) -> Path | None:
        """The newest checkpoint that is complete; a killed save leaves one without its state."""
        found = sorted(self.checkpoints.glob("checkpoint-*"), key=_step, reverse=True)
        for checkpoint in found:
            if _is_complete(checkpoint):
                return checkpoint
            shutil.rmtree(checkpoint)
        return None

    def _forget_after(self, step: int) -> None:
        """Drop what was logged after the checkpoint: the resumed run logs it again."""
        for pattern in _LOGS:
            for path in self.path.glob(pattern):
                kept = [line for line, logged in _lines(path) if logged <= step]
                write_lines(kept, path)


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on, those that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """Commit of the code, with `+changes` where files differ from it; None outside of git."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head + ("+changes" if _git(here, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add one line to a JSONL log."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
        env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
    )
    return done.stdout.strip()


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _is_complete(checkpoint: Path) -> bool:
    """The trainer writes `trainer_state.json` last."""
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return bool(state.get("global_step") == _step(checkpoint))


def _lines(path: Path) -> Iterator[tuple[str, int]]:
    """Lines of a log with their step; a last line that a kill cut short is left out."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            try:
                yield line.rstrip("\n"), int(json.loads(line)["step"])
            except (ValueError, KeyError):
                continue


def _flat(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(values, Mapping) and values:
        for key, value in values.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, values


def refuse_other_overwrite(config: Config, overwrite: str | None) -> None:
    """`--overwrite` names the folder it may remove. Raises ConfigError if it names another."""
    if overwrite is not None and Path(overwrite) != Path(config.output):
        raise ConfigError(
            f"--overwrite {overwrite} is not the output of this run, {config.output}; name that one"
        )
