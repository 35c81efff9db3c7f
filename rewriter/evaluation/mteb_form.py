"""Results in the form of mteb's result files, for tools that read those.

https://github.com/embeddings-benchmark/mteb, `TaskResult`: a file a task, scores by split
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rewriter.evaluation.folder import write_json
from rewriter.evaluation.judging import HEADLINE
from rewriter.evaluation.summary import Result

# Ours → theirs; what stands before the "@".
_NAMES = {"ndcg": "ndcg", "recall": "recall", "mrr": "mrr", "precision": "precision"}
_NAMES["hit"] = "hit_rate"
NO_VERSION = "2.0.0"  # of the form, where mteb is not installed


def write_mteb(result: Result, facts: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `mteb/BACKEND.SYSTEM.json` for every pair; `mteb.TaskResult.from_disk` reads them.

    Args:
        result: of `summarise`.
        facts: of the result folder.
        folder: the result folder.

    Returns:
        The files written.
    """
    paths = []
    for backend, systems in result.items():
        for system, summary in systems.items():
            paths.append(folder / "mteb" / f"{backend}.{system}.json")
            write_json(as_mteb(summary, facts), paths[-1])
    return paths


def as_mteb(summary: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """One system's means as a `TaskResult`. The main score is the collection's own, else NDCG@3."""
    means = {key: one["mean"] for key, one in summary.items() if _is_mean(one)}
    scores: dict[str, Any] = {_name(key): mean for key, mean in means.items() if "@" in key}
    scores["main_score"] = means[facts.get("primary") or HEADLINE]
    scores |= {"hf_subset": "default", "languages": []}
    return {
        "dataset_revision": facts["documents"],
        "task_name": facts["collection"],
        "mteb_version": _version(),
        "scores": {facts["split"]: [scores]},
        "evaluation_time": None,
        "kg_co2_emissions": None,
    }


def _is_mean(value: Any) -> bool:
    return isinstance(value, Mapping) and "mean" in value


def _name(key: str) -> str:
    name, _, k = key.partition("@")
    return f"{_NAMES.get(name, name)}_at_{k}"


def _version() -> str:
    try:
        return version("mteb")
    except PackageNotFoundError:
        return NO_VERSION
