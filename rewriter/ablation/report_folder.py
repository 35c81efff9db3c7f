"""The result folder of a grid, of which `rlqr report` makes a page: its systems are the runs."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewriter.ablation.grid import Grid
from rewriter.ablation.items import Item
from rewriter.ablation.matrix import Matrix
from rewriter.ablation.state import State
from rewriter.jsonl import json_line, read
from rewriter.records import Record, write_lines, write_records
from rewriter.rewrite_file import safe_name

RAW = "raw"
SHOWN = 10  # hits of a record that the page shows


def write_report_folder(
    grid: Grid,
    items: Sequence[Item],
    state: State,
    records: Mapping[str, Sequence[Record]],
    matrix: Matrix,
    factors: Mapping[str, Any],
) -> None:
    """Write `report/` from what is over; where nothing is, records of an earlier grid are removed.

    Args:
        grid, items, state: of the ablation.
        records: item's name → its records; empty where it is not over.
        matrix: the one that the page shows.
        factors: see results.py.
    """
    folder = state.path / "report"
    rows = _renamed(grid, items, records)
    if not rows:
        (folder / "records.jsonl").unlink(missing_ok=True)
        return
    write_records(rows, folder / "records.jsonl")
    write_json(factors, folder / "factors.json")
    write_json(matrix.as_json(), folder / "matrix.json")
    over = [state.evaluation(item) for item in items if records[item.name]]
    _copy_judgements(over, folder)
    _gather_documents(over, folder)


def write_json(value: Any, path: Path) -> None:
    """Write one JSON file."""
    write_lines([json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)], path)


def _renamed(
    grid: Grid, items: Sequence[Item], records: Mapping[str, Sequence[Record]]
) -> list[Record]:
    """All records, a run's called by what it changes."""
    taken = {RAW, *grid.evaluate.names}
    rows = []
    for item in items:
        name = safe_name(item.name.rpartition(".")[0], taken)
        taken.add(name)
        for record in records[item.name]:
            if not item.trains or record.system != RAW:
                system = name if item.trains else record.system
                hits, grades = record.hits[:SHOWN], record.grades[:SHOWN]
                rows.append(replace(record, system=system, hits=hits, grades=grades))
    return rows


def _copy_judgements(evaluations: Sequence[Path], folder: Path) -> None:
    """All evaluations have the same queries, so the first one's will do."""
    source = next((one for one in evaluations if (one / "qrels.trec").is_file()), None)
    if source is None:
        (folder / "qrels.trec").unlink(missing_ok=True)
    else:
        text = (source / "qrels.trec").read_text(encoding="utf-8")
        write_lines([text.rstrip("\n")], folder / "qrels.trec")


def _gather_documents(evaluations: Sequence[Path], folder: Path) -> None:
    """Each evaluation has the documents that its own systems found, and some pages' pictures."""
    found: dict[str, dict[str, Any]] = {}
    for source in evaluations:
        path = source / "documents.jsonl"
        for row in read(path) if path.is_file() else ():
            if "image" not in found.setdefault(row["id"], row) and "image" in row:
                found[row["id"]] = row
            if "image" in row:
                picture = folder / row["image"]
                picture.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / row["image"], picture)
    write_lines(map(json_line, found.values()), folder / "documents.jsonl")
