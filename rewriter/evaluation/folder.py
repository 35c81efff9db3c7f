"""The folder of one evaluation: what it is made of, and how a killed one goes on.

runs/demo-eval/
    records.jsonl       one record for each (system, backend, query)
    result.json         means, intervals, comparisons, parts
    facts.json          what the result depends on: fingerprints, versions, configuration
    diagnostics.json    why a rewriter gains or not
    documents.jsonl     the documents among the first hits and the judgements, shortened
    pages/              pictures of pages, of the queries that changed most
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

from retrievers.identity import MissingFileError
from rewriter.evaluation.judging import EvaluationError
from rewriter.records import Record, RecordError, read_records, write_lines, write_records

logger = logging.getLogger(__name__)

Part = tuple[str, str]  # backend, system
# One folder is one evaluation: with another of these its figures would be others' figures.
_OWN = ("collection", "split", "judged_by")


class ResultFolder:
    """Paths, and the pairs that are finished.

    Args:
        path: the folder; made when something is written.

    Raises:
        EvaluationError: it holds files, but none that an evaluation leaves, or is no folder.
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
        self._facts = self._readable_facts()
        self._known = self._finished()

    def refuse_other(self, facts: Mapping[str, Any]) -> None:
        """Raise EvaluationError where the folder's result is of another collection or split."""
        for key in _OWN:
            if key in self._facts and self._facts[key] != facts[key]:
                raise EvaluationError(
                    f"{self.path} holds a result with {key} {self._facts[key]!r}, this one has "
                    f"{facts[key]!r} and would replace it; choose another folder with --output"
                )

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
        kept = {(record.backend, record.system) for record in records}
        if gone := [".".join(part) for part in self._known if part not in kept]:
            logger.warning(
                "%s held %s too, which were not asked for this time and are gone; what a model "
                "wrote is still in its cache",
                self.path,
                ", ".join(gone),
            )
        made = {".".join(part): one for part, one in fingerprints.items()}
        write_json({**facts, "parts": made}, self.facts)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _path(self, part: Part, fingerprint: str) -> Path:
        return self._parts / f"{part[0]}.{part[1]}.{fingerprint[:32]}.jsonl"

    def _readable_facts(self) -> dict[str, Any]:
        try:
            return read_facts(self.path) if self.facts.is_file() else {}
        except EvaluationError as error:
            logger.warning("%s: all of it is evaluated again", error)
            return {}

    def _finished(self) -> dict[Part, tuple[str, list[Record]]]:
        made: dict[str, str] = self._facts.get("parts", {})
        found: dict[Part, list[Record]] = {}
        try:
            for record in read_records(self.records) if made else ():
                found.setdefault((record.backend, record.system), []).append(record)
        except (RecordError, MissingFileError) as error:
            logger.warning("%s: all of it is evaluated again", error)
            return {}
        return {
            part: (made[".".join(part)], rows)
            for part, rows in found.items()
            if ".".join(part) in made
        }

    def _refuse_strangers(self) -> None:
        for place in (self.path, *self.path.parents):
            if place.exists() and not place.is_dir():
                raise EvaluationError(f"{place} is a file; choose a folder with --output")
        # The last one is there too where a kill came between records and facts.
        own = (self.facts, self.cache, self._parts, self.diagnostics)
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
