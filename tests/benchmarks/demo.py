"""What the demo gained, over the seeds that were run.

    accelerate launch train.py
    accelerate launch train.py --trainer.seed 2 --output runs/demo-2
    accelerate launch train.py --trainer.seed 3 --output runs/demo-3
    python -m tests.benchmarks.demo runs/demo runs/demo-2 runs/demo-3

Reads `result.json` and `cost.json` of finished runs; one that is missing is named, not waited for.
Figures are those of the worst seed.
"""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, show

DEFAULT = ("runs/demo", "runs/demo-2", "runs/demo-3")
RULES = ("last_sentence", "question", "top_idf")


def main() -> None:
    """Print a line a run, then the figures."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", default=DEFAULT, type=Path)
    folders = [Path(folder) for folder in parser.parse_args().runs]
    found = [folder for folder in folders if (folder / "cost.json").is_file()]
    missing = [str(folder) for folder in folders if folder not in found]
    if missing:
        print(f"not run, or not finished: {', '.join(missing)}")
    if not found:
        raise SystemExit("no finished run: train the demo first")
    show(_figures([_read(folder) for folder in found]), small=bool(missing))


def _read(folder: Path) -> dict[str, Any]:
    """A run's systems and cost; prints what it gained over each system."""
    systems = json.loads((folder / "result.json").read_text())["lexical"]
    cost = json.loads((folder / "cost.json").read_text())
    trained = systems["trained"]
    closed = trained["vs_raw"]["diff"] / (_mean(systems["reference"]) - _mean(systems["raw"]))
    print(
        f"{folder}: raw {_mean(systems['raw']):.3f}, trained {_mean(trained):.3f}, "
        f"{closed:.0%} of the way to the reference; {cost['minutes']:.1f} min, "
        f"{cost['peak_memory_gib']:.1f} GiB"
    )
    for system in ("raw", "untrained", *RULES):
        versus = trained[f"vs_{system}"]
        games = f"{versus['win']}/{versus['tie']}/{versus['loss']}"
        print(
            f"    against {system:14} {versus['diff']:+.3f} "
            f"[{versus['low']:+.3f}, {versus['high']:+.3f}]  {games}"
        )
    return {"trained": trained, "cost": cost}


def _figures(runs: list[dict[str, Any]]) -> dict[str, Figure]:
    def worst(system: str, end: str) -> float:
        return min(float(run["trained"][f"vs_{system}"][end]) for run in runs)

    def most(what: str) -> float:
        return max(float(run["cost"][what]) for run in runs)

    return {
        "trained_minus_raw": Figure(worst("raw", "diff"), 0.10, "higher"),
        "trained_minus_raw_low": Figure(worst("raw", "low"), 0.0, "higher"),
        "trained_minus_untrained": Figure(worst("untrained", "diff"), 0.15, "higher"),
        "trained_minus_untrained_low": Figure(worst("untrained", "low"), 0.0, "higher"),
        "minutes": Figure(most("minutes"), 20, "lower"),
        "peak_memory_gib": Figure(most("peak_memory_gib"), 4, "lower"),
    }


def _mean(summary: Any) -> float:
    return float(summary["ndcg@3"]["mean"])


if __name__ == "__main__":
    main()
