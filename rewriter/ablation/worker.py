"""One worker: claims what is open, does it, and goes on until nothing is left.

Any number of workers, on any number of machines, can share one state folder. What one of them was
doing when it was killed is taken over by the next.
"""

import json
import logging
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rewriter.ablation.claims import Claim
from rewriter.ablation.cores import computed_on, crowded
from rewriter.ablation.grid import Grid
from rewriter.ablation.items import Item, trained_by
from rewriter.ablation.process import Stopped, last_words, run_bound
from rewriter.ablation.progress import Progress
from rewriter.ablation.reuse import (
    changed_since,
    data_of,
    finished_like,
    is_finished,
    runs_at,
)
from rewriter.ablation.state import Outcome, State
from rewriter.config import load
from rewriter.records import read_records, write_lines
from rewriter.run_directory import RunDirectory
from rewriter.systems import FILE

logger = logging.getLogger(__name__)

JOB = ("-m", "rewriter.ablation.job")
PREPARE, TRAIN, EVALUATE = "prepare", "train", "evaluate"
TRAINED = "trained"  # what a training calls its own rewriter
MISTAKE = 2  # exit code of one in the settings or data
MOMENT = 1.0  # seconds in which a signal to all processes reaches this one too


class JobFailed(RuntimeError):
    """A process ended with an error: `stage` says which, the text what it said last."""

    def __init__(self, stage: str, said: str) -> None:
        super().__init__(said)
        self.stage = stage


Doer = Callable[[Item, Claim], Outcome]


def work(
    items: Sequence[Item],
    state: State,
    do: Doer,
    *,
    wait: bool = True,
    poll: float = 2.0,
    progress: Progress | None = None,
) -> None:
    """Do what is open.

    Args:
        items: of the grid.
        state: its folder.
        do: does one item, and says how it ended. JobFailed, and an error in its data or settings
            (ValueError, FileNotFoundError), is noted and the next item begun.
        wait: where others hold all that is open, wait for them: one of them may be killed. Else
            only until each of them was seen at work: what a machine held that is gone is done.
        poll: seconds between two looks.
        progress: is told of every end.
    """
    advice: str | None = None
    while open_ones := [item for item in items if state.outcome(item) is None]:
        claimed = next(
            ((item, claim) for item in open_ones if (claim := state.claim(item)) is not None), None
        )
        if claimed is not None:
            if advice is None and (advice := _advice(claimed[0], state)):
                logger.warning("%s", advice)
            _do(*claimed, state, do)
            if progress is not None:
                progress.say(claimed[0])
        elif wait or not all(state.claims.lives(item.name) for item in open_ones):
            time.sleep(poll)
        else:
            logger.info("%d runs are in the hands of other workers", len(open_ones))
            return


def _advice(item: Item, state: State) -> str | None:
    return crowded(computed_on(item.config.threads), state.claims.neighbours())


def _do(item: Item, claim: Claim, state: State, do: Doer) -> None:
    started = time.monotonic()
    try:
        state.end(item, do(item, claim))
    except Stopped:
        logger.warning("%s: another worker took over", item.name)
    except (JobFailed, ValueError, FileNotFoundError) as error:
        stage = error.stage if isinstance(error, JobFailed) else PREPARE
        seconds = time.monotonic() - started
        state.end(item, Outcome("failed", item.evaluation, stage, str(error), seconds=seconds))
        logger.error("%s failed (%s): %s; see %s", item.name, stage, error, state.log(item))
    finally:
        claim.release()


class Runs:
    """Trains and evaluates; what `work` is given as `do`.

    Args:
        grid: says on what to evaluate, what to reuse, and how to launch.
        state: its folder.
    """

    def __init__(self, grid: Grid, state: State) -> None:
        self._grid = grid
        self._state = state

    def __call__(self, item: Item, claim: Claim) -> Outcome:
        """Do one item. Raises JobFailed, and Stopped when the claim is lost."""
        started = time.monotonic()
        write_lines([item.config.to_yaml().rstrip()], self._state.config(item))
        if not item.trains:
            data = data_of(item.config)
            self._evaluate(item, claim, None)
            return Outcome("done", item.evaluation, seconds=time.monotonic() - started, data=data)
        begun = self._state.run(item).exists()
        run, reused = self._trained(item, claim)
        self._evaluate(item, claim, run)
        seconds = 0.0 if begun or reused else time.monotonic() - started
        return Outcome("done", item.evaluation, run=str(run), reused=reused, seconds=seconds)

    def _trained(self, item: Item, claim: Claim) -> tuple[Path, bool]:
        """The folder of the finished run, and whether it was trained elsewhere."""
        own = RunDirectory(self._state.run(item))
        if is_finished(own):
            if changed := changed_since(item.config, own.path):
                raise JobFailed(
                    TRAIN,
                    f"{own.path} was trained on other data ({', '.join(changed)} changed since); "
                    "remove that folder, or give another --output",
                )
            return own.path, False
        found = finished_like(item, runs_at(self._grid.reuse), self._grid.launch)
        if found is not None:
            logger.info("%s: reusing %s", item.name, found)
            return found, True
        resume = all((own.path / file).is_file() for file in ("run.json", "config.yaml"))
        if not resume:  # at most what a killed start left
            shutil.rmtree(own.path, ignore_errors=True)
        logger.info("%s: %s", item.name, "resuming" if resume else "training")
        config = self._as_begun(item) if resume else self._state.config(item)
        words = [TRAIN, str(config), *(["--resume"] if resume else [])]
        self._run(TRAIN, [*(self._grid.launch or (sys.executable,)), *JOB, *words], item, claim)
        if not is_finished(own):
            raise JobFailed(TRAIN, f"{own.path} holds no result although the training ended well")
        return own.path, False

    def _as_begun(self, item: Item) -> Path:
        """The configuration to resume with.

        What is only looked at afterwards may have changed since the run began: a resume would
        refuse it, and it changes nothing that is trained.
        """
        begun = load(self._state.run(item) / "config.yaml")
        if trained_by(begun) != item.fingerprint:  # the resume says what differs
            return self._state.config(item)
        now = {key: getattr(item.config, key) for key in ("output", "index_dir", "threads")}
        path = self._state.path / "configs" / f"{item.name}.resumed.yaml"
        write_lines([begun.model_copy(update=now).to_yaml().rstrip()], path)
        return path

    def _evaluate(self, item: Item, claim: Claim, run: Path | None) -> None:
        wanted = self._grid.evaluate
        folder = self._state.evaluation(item)
        words = [EVALUATE, str(self._state.config(item)), "--output", str(folder)]
        words += ["--backends", ",".join(wanted.backends)]
        words += ["--split", wanted.split] if wanted.split else []
        if run is None:
            words += [word for system in wanted.systems for word in ("--system", system)]
        else:
            words += self._of_run(item, run)
        logger.info("%s: evaluating on %s", item.name, ", ".join(wanted.backends))
        self._run(EVALUATE, [sys.executable, *JOB, *words], item, claim)

    def _of_run(self, item: Item, run: Path) -> list[str]:
        """What is evaluated of a run.

        The training has rewritten the test split at its end. Those rewrites are searched with on
        every backend, unless the prompt, another split, or sampling asks for other ones.
        """
        records = run / "records.jsonl"
        split = self._grid.evaluate.split
        same_split = split is None or split == item.config.collection.test
        sampled = item.config.evaluation.samples > 1  # as the baselines then are
        others = item.config.prompt.by_backend or sampled or not same_split
        if others or not records.is_file():
            return ["--checkpoint", str(run)]
        texts = {
            record.query_id: record.rewrite
            for record in read_records(records)
            if record.system == TRAINED
        }
        file = self._state.path / "rewrites" / item.name / f"{TRAINED}.jsonl"
        rows = ({"query_id": query, "rewrite": text} for query, text in texts.items())
        write_lines((json.dumps(row, ensure_ascii=False) for row in rows), file)
        return ["--system", f"{FILE}{file}"]

    def _run(self, stage: str, command: Sequence[str], item: Item, claim: Claim) -> None:
        log = self._state.log(item)
        start = log.stat().st_size if log.is_file() else 0
        code = run_bound(command, log, claim.lost.is_set)
        if not code:
            return
        if code != MISTAKE:
            # Where a batch system ends all at once, this worker's own signal may be a moment
            # behind: the run was stopped then, and did not fail.
            time.sleep(MOMENT)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = last_words(log, start)
        raise JobFailed(stage, said if said and code == MISTAKE else f"{how}; {said}".rstrip("; "))
