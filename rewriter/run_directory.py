"""The folder of one run: what it is made of, and who may write into it.

runs/demo/
    config.yaml         the resolved configuration
    run.json            data fingerprints, facts of the indexes, versions, git commit
    metrics.jsonl       every logged number; alarms too
    evaluations.jsonl   one line for each held-out evaluation
    completions.jsonl   every completion of the training, with what the search made of it
    sampling.jsonl      which groups taught something, with `sampling: informative`
    warm_start/         what was imitated and the adapter, with a warm start
    checkpoints/        the trainer's own, for --resume
    adapters/           the adapter of each evaluation that was the best so far
    best/               the result: adapter, tokenizer, prompt, model card, manifest
    records.jsonl       one record for each (system, backend, query) of the final evaluation
    result.json         means and intervals of those records
    documents.jsonl     the documents among the first hits and the judgements, shortened
    pages/              pictures of pages, where pages are searched
    runs/*.trec         BACKEND.SYSTEM.trec, and qrels.trec beside the folder, for outside tools
    cost.json           minutes and peak memory of the process that finished the run
    .lock               while a process is training into it; see rewriter/run_lock.py
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rewriter.config import Config
from rewriter.records import write_lines
from rewriter.resume import RunError, compare, forget_after, last_checkpoint, step_of
from rewriter.run_lock import LOCK, PATIENCE, alone_in
from rewriter.yaml_source import ConfigError

PACKAGES = ("trl", "transformers", "peft", "accelerate", "torch", "datasets", "rank-bm25", "bm25s")


class RunDirectory:
    """Paths of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.adapters = self.path / "adapters"
        self.best = self.path / "best"
        self.metrics = self.path / "metrics.jsonl"
        self.evaluations = self.path / "evaluations.jsonl"
        self.sampling = self.path / "sampling.jsonl"
        self.records = self.path / "records.jsonl"
        self.result = self.path / "result.json"
        self.documents = self.path / "documents.jsonl"

    def completions(self, rank: int) -> Path:
        """The completions log of a rank: each rank writes what it has seen."""
        return self.path / ("completions.jsonl" if rank == 0 else f"completions.rank{rank}.jsonl")

    def adapter(self, step: int) -> Path:
        """Where the adapter of an evaluation lies that was the best so far."""
        return self.adapters / f"step-{step:06d}"

    def prepare(
        self,
        config: Config,
        facts: Mapping[str, Any],
        resume: bool,
        every: int = 1,
        needed: Sequence[str] = (),
        told: Mapping[str, Any] | None = None,
    ) -> Path | None:
        """Write `config.yaml` and `run.json`, or compare with those there.

        Args:
            config: the resolved configuration.
            facts: data fingerprints; a resumed run must have the same.
            resume: whether to go on with what is there.
            every: steps that a buffer of rollouts lasts; a resume starts where one was used up.
            needed: files that a checkpoint has to hold.
            told: further facts for readers, which a resumed run need not have alike.

        Returns:
            The checkpoint to resume from; None starts at step 0.

        Raises:
            RunError: the folder is in use, there is nothing to resume, or config or data differ.
        """
        if resume:
            self._holds()  # a file in its place is named
            compare(self.path, config.dump(), facts, versions())
            with self._writing():
                write_lines([config.to_yaml().rstrip()], self.path / "config.yaml")
                checkpoint = last_checkpoint(self.checkpoints, every, needed)
                forget_after(self.path, step_of(checkpoint) if checkpoint else 0)
            return checkpoint
        self.refuse_if_used()
        facts = {**facts, **(told or {}), "versions": versions(), "git_commit": git_commit()}
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True)
            # In this order: what was killed in between can be overwritten by name.
            write_lines([json.dumps(facts, indent=2)], self.path / "run.json")
            write_lines([config.to_yaml().rstrip()], self.path / "config.yaml")
        return None

    def enter(self, held: ExitStack, resume: bool, overwrite: bool) -> None:
        """Keep other processes out of a run that is there; a new one is refused where one is.

        Args:
            held: keeps them out until it is closed.
            resume: whether to go on with the run; waits a little for one that is about to end.
            overwrite: whether to replace it.

        Raises:
            RunError: the folder is in use.
        """
        if not (resume or overwrite):
            self.refuse_if_used()
        elif self._holds() and self._is_run():  # else nothing is written into it
            with self._writing():
                held.enter_context(alone_in(self.path, PATIENCE if resume else 0.0))

    def begin(self, held: ExitStack, overwrite: bool) -> None:
        """Make the folder of a new run, and keep other processes out of it; see `enter`.

        Raises:
            RunError: the folder is in use, or cannot be written.
        """
        with self._writing():
            if overwrite:
                self.set_aside()
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                self.refuse_if_used()
                held.enter_context(alone_in(self.path))
            except (OSError, RunError):
                self._bring_back()
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be written ({error.strerror}: {error.filename}); choose "
                "another with --output"
            ) from error

    def write_cost(self, seconds: float) -> None:
        """`cost.json`: what this process took, from reading the configuration to the table."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Linux counts in KiB, macOS in bytes.
        gib = peak / (1 << 30 if sys.platform == "darwin" else 1 << 20)
        cost = {"minutes": seconds / 60, "peak_memory_gib": gib}
        write_lines([json.dumps(cost, indent=2)], self.path / "cost.json")

    def set_aside(self) -> None:
        """Move an earlier run out of the way, until the new one begins. Refuses what is no run.

        Raises:
            RunError: there are files, but no `run.json`.
        """
        if self._holds() and not self._is_run():
            raise RunError(
                f"{self.path} holds files, but no run.json: it is not a run's folder, and is left "
                "alone; remove it yourself or choose another with --output"
            )
        if self.path.is_dir():
            shutil.rmtree(self._aside, ignore_errors=True)
            self.path.rename(self._aside)

    def forget_replaced(self) -> None:
        """Remove for good what `set_aside` moved: the new run has begun."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def withdraw(self) -> None:
        """Remove the folder again, if no file but those of `begin` and `prepare` is in it.

        What was set aside for this run comes back.
        """
        files = {path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file()}
        if self.path.is_dir() and files <= {Path("config.yaml"), Path("run.json"), Path(LOCK)}:
            shutil.rmtree(self.path)
        self._bring_back()

    def _bring_back(self) -> None:
        if self._aside.is_dir() and not self.path.exists():
            self._aside.rename(self.path)

    @property
    def _aside(self) -> Path:
        return self.path.parent / f".{self.path.name}.replaced"

    def _holds(self) -> set[str]:
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file; choose a folder with --output")
        entries = self.path.iterdir() if self.path.is_dir() else ()
        return {entry.name for entry in entries} - {LOCK}

    def _is_run(self) -> bool:
        return (self.path / "run.json").is_file()

    def refuse_if_used(self) -> None:
        """Raise RunError where a new run would write over something."""
        if not self._holds():
            return
        if not self._is_run():
            raise RunError(
                f"{self.path} holds files that are no run's; choose another folder with --output"
            )
        raise RunError(
            f"{self.path} holds a run already; add --resume to go on with it, "
            f"--overwrite {self.path} to replace it, or choose another with --output"
        )


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Versions of the packages that results depend on, those that are installed."""
    found = {}
    for package in packages:
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


def refuse_other_overwrite(config: Config, overwrite: str | None, resume: bool) -> None:
    """`--overwrite` names the folder it may remove. Raises ConfigError if it names another."""
    if overwrite is not None and resume:
        raise ConfigError("--resume and --overwrite contradict each other; give one of them")
    if overwrite is not None and Path(overwrite).resolve() != Path(config.output).resolve():
        raise ConfigError(
            f"--overwrite {overwrite} is not the output of this run, {config.output}; name that one"
        )
