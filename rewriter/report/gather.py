"""What a result folder holds, read and checked.

records.jsonl       needed: one record for each (system, backend, query)
result.json         means and intervals; computed from the records where it is absent
qrels.trec          judgements; else only judged documents among the hits are known
documents.jsonl     {"id", "title", "text"} and, for pages, "image": a file in the folder
facts.json          what the result depends on; of a training run.json and config.yaml
diagnostics.json    figures that say why a rewriter gains or not
metrics.jsonl       the curves of a training
evaluations.jsonl   its held-out evaluations
matrix.json         trained on × evaluated on: {"rows", "columns", "values", "diagonal"}
factors.json        of `rlqr ablate`: each factor of a grid alone, and held-out curves
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, isclose
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rewriter.evaluation import HEADLINE, Result, summarise
from rewriter.prompt_systems import LABELS as PROMPTS
from rewriter.records import Record, by, check_distinct, read_records
from rewriter.report.faults import ReportError
from rewriter.report.files import Document, documents, json_file, json_lines, text_file
from rewriter.report.matrix import Matrix
from rewriter.systems import SYSTEMS

logger = logging.getLogger(__name__)

BASELINE = "raw"
LABELS = {name: system.label for name, system in SYSTEMS.items()} | {
    **PROMPTS,
    "untrained": "untrained rewriter",
    "trained": "trained rewriter",
}


@dataclass(frozen=True)
class Source:
    """Everything that the report is made of.

    Attributes:
        folder: where it was read.
        records: of one split; at least one.
        result: backend → system → summary.
        split: of the collection.
        judged: query id → document id → grade above 0, as far as it is known.
        documents: by id; empty where the folder has none.
        labels: system → how it is called on the page.
        facts: heading → what the result depends on: JSON or text.
        diagnostics: as in the file; None if there is none.
        steps: the logged lines of a training; evaluations: its held-out evaluations.
        matrix: trained on × evaluated on; None if there is none.
    """

    folder: Path
    records: list[Record]
    result: Result
    split: str
    judged: dict[str, dict[str, float]]
    documents: dict[str, Document]
    labels: dict[str, str]
    facts: dict[str, Any]
    diagnostics: Any
    steps: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    matrix: Matrix | None

    @property
    def baseline(self) -> str | None:
        """The system that the others are compared with; None if it was not evaluated."""
        return BASELINE if all(BASELINE in found for found in self.result.values()) else None

    @property
    def systems(self) -> list[str]:
        """Names of all systems, in order of appearance."""
        return list(dict.fromkeys(name for found in self.result.values() for name in found))

    def label(self, system: str) -> str:
        """How a system is called on the page."""
        return self.labels.get(system, system)


def gather(folder: Path) -> Source:
    """Read a folder; see `rewriter.report.write` for what is raised."""
    if not (folder / "records.jsonl").is_file():
        raise ReportError(
            f"no records.jsonl in {folder}; give the folder of a finished evaluation or training"
        )
    records = read_records(folder / "records.jsonl")
    if not records:
        raise ReportError(f"{folder / 'records.jsonl'} is empty; run `rlqr eval` again")
    check_distinct(records)
    facts = _facts(folder)
    return Source(
        folder=folder,
        records=records,
        result=_result(folder / "result.json", records),
        split=_split(records),
        judged=_judged(folder / "qrels.trec", records),
        documents=documents(folder),
        labels=LABELS | _labels(facts),
        facts=facts,
        diagnostics=json_file(folder / "diagnostics.json"),
        steps=json_lines(folder / "metrics.jsonl"),
        evaluations=json_lines(folder / "evaluations.jsonl"),
        matrix=Matrix.read(folder / "matrix.json"),
    )


def _split(records: list[Record]) -> str:
    splits = list(by(records, "split"))
    if len(splits) > 1:
        raise ReportError(
            f"records of {len(splits)} splits ({', '.join(splits)}); evaluate one split a folder"
        )
    return splits[0]


def _result(path: Path, records: list[Record]) -> Result:
    result: Result | None = json_file(path)
    if result is None:
        logger.info("no %s: means and intervals are computed from the records", path)
        return summarise(records)
    for backend, found in by(records, "backend").items():
        for system, rows in by(found, "system").items():
            _check_same(path, result, backend, system, rows)
    pairs = {(record.backend, record.system) for record in records}
    extra = {(b, s) for b, found in result.items() for s in found} - pairs
    if extra:
        raise ReportError(f"{path} has {sorted(extra)[0]}, of which there is no record; {_AGAIN}")
    return result


_AGAIN = "remove result.json to have it computed from the records, or evaluate again"


def _check_same(path: Path, result: Result, backend: str, system: str, rows: list[Record]) -> None:
    try:
        found = result[backend][system][HEADLINE]
        mean, n = float(found["mean"]), int(found["n"])
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"{path}: no {HEADLINE} of {system} on {backend}; {_AGAIN}") from error
    values = [row.metrics[HEADLINE] for row in rows if not row.excluded]
    if n != len(values) or not isclose(mean, fsum(values) / max(n, 1), abs_tol=1e-6):
        raise ReportError(
            f"{path}: {system} on {backend} has {HEADLINE} {mean:.4f} of {n} queries, the records "
            f"{fsum(values) / max(len(values), 1):.4f} of {len(values)}; {_AGAIN}"
        )


def _judged(path: Path, records: list[Record]) -> dict[str, dict[str, float]]:
    judged: dict[str, dict[str, float]] = {}
    for record in records:
        for hit, grade in zip(record.hits, record.grades, strict=True):
            if grade > 0:
                judged.setdefault(record.query_id, {})[hit.id] = grade
    for number, line in enumerate(text_file(path).split("\n"), 1):
        if not line:
            continue
        try:
            query, _, document, given = line.split()
            if float(given) > 0:
                judged.setdefault(unquote(query), {})[unquote(document)] = float(given)
        except ValueError as error:
            raise ReportError(
                f"{path}:{number}: {line[:80]!r} is not `query 0 document grade`"
            ) from error
    return judged


def _labels(facts: Mapping[str, Any]) -> dict[str, str]:
    """As the evaluation called its systems: {"systems": {name: {"label": …}}} in facts.json."""
    made = facts.get("Facts")
    systems = made.get("systems") if isinstance(made, dict) else None
    named = systems.items() if isinstance(systems, dict) else ()
    return {
        name: str(one["label"]) for name, one in named if isinstance(one, dict) and "label" in one
    }


def _facts(folder: Path) -> dict[str, Any]:
    found: Mapping[str, Any] = {
        "Facts": json_file(folder / "facts.json"),
        "Run": json_file(folder / "run.json"),
        "Cost": json_file(folder / "cost.json"),
        "Configuration": text_file(folder / "config.yaml"),
    }
    return {name: value for name, value in found.items() if value}
