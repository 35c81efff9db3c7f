"""Evaluated runs with values that are easily worked out, for the tests of the results."""

import json
from pathlib import Path
from typing import Any

from rewriter.ablation.cells import Evaluated
from rewriter.ablation.grid import Grid
from rewriter.ablation.items import Item
from rewriter.ablation.state import Outcome, State
from rewriter.config import Config
from rewriter.records import write_records
from tests.tiny_records import record


def results_grid(**more: Any) -> Grid:
    """Three ways to be trained, two seeds and two backends."""
    axes = {
        "on": {
            "lexical": {"reward.backends": "lexical"},
            "semantic": {"reward.backends": "semantic"},
            "mixed": {"reward.backends": ["lexical", "semantic"]},
        }
    }
    values: dict[str, Any] = {
        "base": "b",
        "output": "o",
        "axes": axes,
        "seeds": [1, 2],
        "evaluate": {"backends": ["lexical", "semantic"], "systems": ["raw"]},
        "matrices": [["on", "evaluated_on"], ["on", "seed"]],
    }
    return Grid.model_validate(values | more)


def at(on: str, seed: int, lexical: float, semantic: float) -> Evaluated:
    """A run with the same value for each of its two queries."""
    values = {"lexical": {"q": lexical, "r": lexical}, "semantic": {"q": semantic, "r": semantic}}
    return Evaluated(f"{on}-{seed}", {"on": on, "seed": str(seed)}, values)


FOUND = [
    Evaluated("raw", {}, {"lexical": {"q": 0.5, "r": 0.5}, "semantic": {"q": 0.25, "r": 0.25}}),
    at("lexical", 1, 0.75, 0.25),
    at("lexical", 2, 0.75, 0.25),
    at("semantic", 1, 0.5, 0.5),
    at("mixed", 1, 0.5, 0.5),
    at("mixed", 2, 0.5, 0.5),
]


def finished(tmp_path: Path, names: list[str]) -> tuple[Grid, list[Item], State]:
    """Runs that are over, each with a document of its own, the second one with a picture."""
    config = Config.model_validate({"model": {"name": "x"}, "reward": {"backends": "lexical"}})
    axes = {"on": {name: {"lora.r": number} for number, name in enumerate(names)}}
    evaluate = {"backends": ["lexical"], "systems": []}
    grid = results_grid(axes=axes, seeds=[], evaluate=evaluate, matrices=[])
    state = State(tmp_path)
    items = [Item(f"{name}.1", {"on": name}, config, name, name) for name in names]
    for number, item in enumerate(items):
        folder = state.evaluation(item)
        write_records(
            [record(f"{name}-made", "q", 0.5) for name in names[:1]],
            folder / "records.jsonl",
        )
        rows: list[dict[str, Any]] = [{"id": "d0", "title": "", "text": "both"}]
        rows.append({"id": f"own{number}", "title": "", "text": "\u2028"})
        if number == 1:
            rows[0]["image"] = "pages/0.png"
            (folder / "pages").mkdir()
            (folder / "pages" / "0.png").write_bytes(b"picture")
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "documents.jsonl").write_text(text, encoding="utf-8")
        (folder / "qrels.trec").write_text("q 0 d0 1\n")
        state.end(item, Outcome("done", item.evaluation))
    return grid, items, state
