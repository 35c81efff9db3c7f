"""The folder of one evaluation: what it is made of, and how a killed one goes on.

runs/demo-eval/
    records.jsonl       one record for each (system, backend, query)
    result.json         means, intervals, comparisons, parts
    facts.json          what the result depends on: fingerprints, versions, configuration
    diagnostics.json    why a rewriter gains or not
    documents.jsonl     the documents among the first hits and the judgements, shortened
    runs/*.trec         BACKEND.SYSTEM.trec, and qrels.trec beside the folder, for outside tools
    cache/              completions, so that nothing is generated twice
    parts/              finished (system, backend) pairs of an evaluation that is not over
"""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewriter.evaluation.judging import EvaluationError
from rewriter.records import Record, read_records, write_lines, write_records

logger = logging.getLogger(__name__)

Part = tuple[str, str]  # backend, system


class ResultFolder:
    """Paths, and the pairs that are finished.

    Args:
        path: the folder; made when something is written.

    Raises:
        EvaluationError: it holds files, but none that an evaluation leaves.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.records = self.path / "records.jsonl"
        self.result = self.path / "result.json"
        self.facts = self.path / "facts.json"
        self.diagnostics = self.path / "diagnostics.json"
        self.documents = self.path / "documents.jsonl"
        self.cache = self.path / "cache"
        self._parts = self.path / "parts"
        self._refuse_strangers()
        self._known = self._finished()

    def part(self, part: Part, fingerprint: str) -> list[Record] | None:
        """The records of a finished pair, if they were made by the same as now."""
        path = self._path(part, fingerprint)
        if path.is_file():
            return read_records(path)
        before = self._known.get(part)
        if before is None:
            return None
        if before[0] != fingerprint:
            logger.info("%s.%s: was made by something else; evaluated again", *part)
            return None
        return before[1]

    def keep(self, part: Part, fingerprint: str, records: Sequence[Record]) -> None:
        """Put a finished pair aside until the whole is written."""
        write_records(records, self._path(part, fingerprint))

    def write(
        self, records: Sequence[Record], facts: Mapping[str, Any], fingerprints: Mapping[Part, str]
    ) -> None:
        """Write `records.jsonl` and `facts.json`, and remove what was put aside.

        Facts go first and come last: they say what made the records, so that they must never stand
        beside other ones.
        """
        self.facts.unlink(missing_ok=True)
        write_records(records, self.records)
        made = {".".join(part): one for part, one in fingerprints.items()}
        write_json({**facts, "parts": made}, self.facts)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _path(self, part: Part, fingerprint: str) -> Path:
        return self._parts / f"{part[0]}.{part[1]}.{fingerprint[:32]}.jsonl"

    def _finished(self) -> dict[Part, tuple[str, list[Record]]]:
        if not (self.facts.is_file() and self.records.is_file()):
            return {}
        made: dict[str, str] = read_facts(self.path).get("parts", {})
        found: dict[Part, list[Record]] = {}
        for record in read_records(self.records):
            found.setdefault((record.backend, record.system), []).append(record)
        return {
            part: (made[".".join(part)], rows)
            for part, rows in found.items()
            if ".".join(part) in made
        }

    def _refuse_strangers(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise EvaluationError(f"{self.path} is a file; choose a folder with --output")
        own = (self.facts, self.cache, self._parts)
        if (
            self.path.is_dir()
            and any(self.path.iterdir())
            and not any(path.exists() for path in own)
        ):
            raise EvaluationError(
                f"{self.path} holds files that are no evaluation's; choose another folder with "
                "--output"
            )


def read_facts(folder: Path) -> dict[str, Any]:
    """`facts.json` of a result folder.

    Raises:
        EvaluationError: there is none, or it is damaged.
    """
    path = Path(folder) / "facts.json"
    if not path.is_file():
        raise EvaluationError(f"{path} is not there; give a folder that `rlqr eval` has finished")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EvaluationError(f"{path}: not JSON ({error}); evaluate again") from error
    if not isinstance(found, dict):
        raise EvaluationError(f"{path}: no JSON object; evaluate again")
    return found


def write_json(value: Any, path: Path) -> None:
    """Write a JSON file for people and programs, whole or not at all."""
    write_lines([json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)], path)
