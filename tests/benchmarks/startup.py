"""How long `accelerate launch train.py` takes to its first optimizer step, the model cached.

    python -m tests.benchmarks.startup                   configs/demo.yaml
    python -m tests.benchmarks.startup --config FILE     another configuration
    python -m tests.benchmarks.startup --small           a model of some thousand weights

From the start of the command to the end of the first step: imports, data, index, model, the check
of the first completions, and the step itself. The held-out evaluation of the untrained model lies
between and is not counted: it goes from the line "set up in …" to the first row of `metrics.jsonl`.
The run is stopped after that step.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import TypeVar

from retrievers.models import resolve
from rewriter.config import load
from tests.benchmarks.figures import Figure, show

ROOT = Path(__file__).parents[2]
READY = "set up in "  # what a run says when all is ready
PATIENCE = 1800.0  # seconds
POLL = 0.02
T = TypeVar("T")


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a tiny model, no goal is judged")
    parser.add_argument("--config", default="configs/demo.yaml", help="YAML file (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = _tiny(Path(folder)) if options.small else Path(options.config)
        resolve(load(config).model.name)  # a package's weights are converted once
        setup, step = _time(Path(folder), config.resolve())
    print(f"set up in {setup:.1f} s, first step in {step:.1f} s")
    show({"startup_seconds": Figure(setup + step, 45, "lower", "seconds")}, options.small)


def _tiny(folder: Path) -> Path:
    import yaml

    from tests.tiny import settings

    file = folder / "tiny.yaml"
    file.write_text(yaml.safe_dump(settings(folder)), encoding="utf-8")
    return file


def _time(folder: Path, config: Path) -> tuple[float, float]:
    """Seconds to the end of the set-up, and from the evaluation's end to the first step's."""
    launch = [sys.executable, "-m", "accelerate.commands.launch", "train.py"]
    run = folder / "measured"
    words = ["--config", str(config), "--output", str(run), "--trainer.logging_steps", "1"]
    log = folder / "log"
    with log.open("w") as file:
        started = time.time()
        # A session of its own: the launcher and what it launches are stopped together.
        process = Popen(
            [*launch, *words], cwd=ROOT, stdout=file, stderr=file, start_new_session=True
        )
    try:
        ready = _wait(process, log, lambda: _said_ready(log))
        evaluated, stepped = _wait(process, log, lambda: _first_rows(run / "metrics.jsonl"))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    return ready - started, stepped - evaluated


def _wait(process: Popen[bytes], log: Path, look: Callable[[], T | None]) -> T:
    until = time.time() + PATIENCE
    while (seen := look()) is None:
        if process.poll() is not None or time.time() > until:
            raise SystemExit(f"the run did not come to its first step:\n{log.read_text()}")
        time.sleep(POLL)
    return seen


def _said_ready(log: Path) -> float | None:
    return time.time() if READY in log.read_text(encoding="utf-8", errors="replace") else None


def _first_rows(metrics: Path) -> tuple[float, float] | None:
    """When the first evaluation and the first step ended."""
    if not metrics.is_file():
        return None
    lines = metrics.read_text(encoding="utf-8").split("\n")[:-1]  # the last one may be half written
    rows = [json.loads(line) for line in lines]
    evaluations = [row["time"] for row in rows if "eval_failures" in row and row["step"] == 0]
    steps = [row["time"] for row in rows if "reward" in row]
    return (evaluations[0], steps[0]) if evaluations and steps else None


if __name__ == "__main__":
    main()
