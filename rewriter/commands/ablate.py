"""`rlqr ablate`: a grid of trainings, each evaluated on every backend."""

import logging
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from rewriter.commands.arguments import path

logger = logging.getLogger(__name__)

EXAMPLES = """\
rlqr ablate --config configs/ablations/backends.yaml --dry-run
rlqr ablate --config configs/ablations/backends.yaml
rlqr ablate --config configs/ablations/backends.yaml --output runs/short --trainer.max_steps 4

Stopped or killed, it goes on where it was when it is given again. Any number of these commands can
work on one folder, also on several machines. Any key of the base configuration can be overridden,
unless the grid's axes set it.
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--config", type=path, metavar="FILE", required=True, help="YAML file")
    parser.add_argument(
        "--dry-run",
        "--dry_run",
        dest="dry_run",
        action="store_true",
        help="show every run with what it costs, and stop",
    )
    parser.add_argument("--output", type=path, metavar="DIR", help="instead of the grid's own")
    parser.add_argument(
        "--step_time",
        type=_seconds,
        metavar="SECONDS",
        help="of a step, instead of what earlier runs measured",
    )
    parser.add_argument("--retry_failed", action="store_true", help="try again what failed")
    parser.add_argument(
        "--no_wait",
        action="store_true",
        help="end where other workers hold all that is open, instead of waiting for them",
    )
    parser.add_argument(
        "--results", action="store_true", help="write the results of what is there, and stop"
    )
    parser.set_defaults(run=run, overrides=[])


def run(options: Namespace) -> None:
    """Show the costs, or do the work and show the results; exit code 1 where a run failed."""
    from rewriter.ablation.grid import read_grid
    from rewriter.ablation.items import plan
    from rewriter.ablation.progress import costs
    from rewriter.ablation.state import State

    _check(options)
    file = Path(options.config)
    grid = read_grid(file)
    output = Path(options.output or grid.output)
    items = plan(grid, file, output, options.overrides)
    state = State(output)
    steps = _step_seconds(grid, items, state, options.step_time)
    if options.dry_run:
        lines = costs(items, state, steps, _reused(grid, items), retry=options.retry_failed)
        sys.stdout.write("\n".join(lines) + "\n")
        return
    if options.retry_failed:
        state.forget_failures(items)
    if not options.results:
        _work(grid, file, items, state, steps, wait=not options.no_wait)
    _show(grid, items, state)


def _check(options: Namespace) -> None:
    """Refuse words that say the opposite of each other."""
    from rewriter.yaml_source import ConfigError

    others = [name for name in ("dry_run", "retry_failed", "no_wait") if getattr(options, name)]
    if options.results and others:
        raise ConfigError(f"--results trains and evaluates nothing; leave it out, or --{others[0]}")


def _work(grid: Any, file: Path, items: Any, state: Any, steps: Any, *, wait: bool) -> None:
    from rewriter.ablation.checks import check_split
    from rewriter.ablation.progress import Progress
    from rewriter.ablation.reuse import refuse_other_data
    from rewriter.ablation.worker import Runs, work

    check_split(grid, file, items[0].config)
    refuse_other_data(items, state)
    signal.signal(signal.SIGTERM, _stop)  # of a batch system: end in peace, claims released
    try:
        work(items, state, Runs(grid, state), wait=wait, progress=Progress(items, state, steps))
    except KeyboardInterrupt:
        logger.warning("stopped; give the same command again to go on")
        raise SystemExit(130) from None


def _show(grid: Any, items: Any, state: Any) -> None:
    from rewriter.ablation.results import write_results

    while True:
        outcomes = [state.outcome(item) for item in items]
        text = write_results(grid, items, state)
        _page(state.path / "report")
        # Another worker may end a run meanwhile: the last one to write has to have seen all.
        if outcomes == [state.outcome(item) for item in items]:
            break
    sys.stdout.write(text + "\n")
    if any(outcome is not None and outcome.status == "failed" for outcome in outcomes):
        raise SystemExit(1)


def _page(folder: Path) -> None:
    from rewriter.report import ReportError, write

    if (folder / "records.jsonl").is_file():
        try:
            write(folder)
        except ReportError as error:
            logger.warning("no page: %s", error)


def _step_seconds(grid: Any, items: Any, state: Any, given: float | None) -> dict[str, float]:
    """Item's name → seconds of a step: those given, else measured, of its own kind if possible."""
    from rewriter.ablation.reuse import runs_at, step_seconds

    folders = [*runs_at(["runs/*"], state.path), *runs_at(grid.reuse)]
    measured = {item.name: step_seconds(item.config, folders) for item in items if item.trains}
    known = {name: given or seconds for name, seconds in measured.items()}
    return {name: seconds for name, seconds in known.items() if seconds is not None}


def _reused(grid: Any, items: Any) -> dict[str, Path]:
    """Item's name → a finished run of the same settings and data."""
    from rewriter.ablation.reuse import finished_like, runs_at

    folders = runs_at(grid.reuse)
    found = {item.name: finished_like(item, folders, grid.launch) for item in items if item.trains}
    return {name: folder for name, folder in found.items() if folder is not None}


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no time; give seconds such as 8")
    return value


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt
