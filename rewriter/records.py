"""Records: what one system and one backend did with one query. Reports are computed from them.

`records.jsonl` holds one record a line, in UTF-8.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Literal
from uuid import uuid4

from pydantic import ConfigDict, TypeAdapter, ValidationError

from retrievers.base import Hit
from retrievers.identity import MissingFileError
from retrievers.queries import ORIGINS
from rewards.parsing import Parsed

Field = Literal["system", "backend", "split", "query_id", "origin"]
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class RecordError(ValueError):
    """A record, or a file of records, that cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a system made of a query.

    text: the rewrite; failure: why there is none, and the raw query stands in for it, counted.
    Neither: the system leaves the query as it is, which is no failure. Raises RecordError for both
    at once and for a blank text.
    """

    text: str | None
    failure: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None and (self.failure is not None or not self.text.strip()):
            raise RecordError(
                f"rewrite {self.text!r} with failure {self.failure!r}: give a text that is not "
                'blank, or None and the failure, such as Rewrite(None, "empty")'
            )

    @classmethod
    def parsed(cls, parsed: Parsed) -> "Rewrite":
        """From what `rewards.parsing.parse` read."""
        return cls(parsed.text, parsed.failure)


@dataclass(frozen=True, slots=True)
class Sample:
    """One of several rewrites that a system sampled for a query.

    Fields as those of `Record`, but of the hits the ids alone.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    rewrite: str | None
    failure: str | None
    text: str
    hits: tuple[str, ...]
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Record:
    """One (system, backend, query).

    Attributes:
        system, backend: names in `[A-Za-z0-9_-]`: they become names of files.
        split: of the collection.
        query_id: the query's id.
        origin: "human" or "synthetic", to be reported apart.
        query: the raw query.
        rewrite: the rewrite; None where the query was left as it is or the rewrite failed.
        failure: why there is no rewrite, so that the raw query was sent; None if all went well.
        text: the search text that was sent.
        hits: document ids and scores, best first.
        grades: the judged grade of each hit, 0 for one that nobody judged.
        metrics: "ndcg@3" → value in [0, 1]; empty where the query has no relevant document or its
            search failed, which leaves it out of every mean.
        source: the document that a synthetic query was written from.
        groups: by what queries are parted in reports: "languages" → "ko→en", and every column of
            the query's metadata.
        error: why the search failed for good; None if it did not.
        samples: every rewrite where a system sampled several; `metrics` are their means then, and
            the fields above show the first one. Empty for one rewrite a query.

    Raises:
        RecordError: a name that is no file name, an unknown origin, or not one grade a hit.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    system: str
    backend: str
    split: str
    query_id: str
    origin: str
    query: str
    rewrite: str | None
    failure: str | None
    text: str
    hits: tuple[Hit, ...]
    grades: tuple[float, ...]
    metrics: dict[str, float]
    source: str | None = None
    groups: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        for what in ("system", "backend"):
            name = getattr(self, what)
            if not _NAME.fullmatch(name):
                raise RecordError(
                    f"{what} {name!r}: use ASCII letters, digits, '_' and '-' only, at least one; "
                    "it becomes part of a file's name"
                )
        if self.origin not in ORIGINS:
            raise RecordError(f"origin {self.origin!r} is none of {', '.join(ORIGINS)}")
        if len(self.hits) != len(self.grades):
            raise RecordError(
                f"query {self.query_id!r}: {len(self.hits)} hits, but {len(self.grades)} grades"
            )

    @property
    def excluded(self) -> bool:
        """Whether the query is in no mean: nothing is relevant, or the search failed."""
        return not self.metrics

    @property
    def failed(self) -> bool:
        """Whether the search failed, so that nobody knows what the rewrite is worth."""
        return self.error is not None

    @property
    def fallbacks(self) -> int:
        """Rewrites that failed, so that the raw query was sent: 0 or 1, or one a sample."""
        made = self.samples or (self,)
        return sum(one.failure is not None for one in made)


_ADAPTER = TypeAdapter(Record)
_NAMES = tuple(one.name for one in fields(Record))


def by(records: Iterable[Record], field: Field) -> dict[str, list[Record]]:
    """Group by one field, groups and their records in order of appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(str(getattr(record, field)), []).append(record)
    return groups


def check_distinct(records: Iterable[Record]) -> None:
    """Raise RecordError where a (system, backend, query) is there twice, of two splits or runs."""
    seen: set[tuple[str, str, str]] = set()
    for record in records:
        key = (record.system, record.backend, record.query_id)
        if key in seen:
            raise RecordError(
                f"system {key[0]!r}, backend {key[1]!r}, query {key[2]!r} has two records; keep to "
                "one split and one run, and see that each query is evaluated once"
            )
        seen.add(key)


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write a JSONL file, whole or not at all. Raises RecordError for a score that is NaN."""
    write_lines(map(_line, records), path)


def read_records(path: Path) -> list[Record]:
    """Read a JSONL file.

    Raises:
        RecordError: a line is no record; names file:line and each field at fault.
        MissingFileError: there is no such file.
    """
    if not Path(path).is_file():
        raise MissingFileError(f"no records at {path}; `rlqr eval` writes records.jsonl")
    # Lines end at \n only: str.splitlines would also cut at the U+2028 inside of a text.
    with Path(path).open("rb") as file:
        return [_read(line, f"{path}:{number}") for number, line in enumerate(file, 1)]


def write_lines(lines: Iterable[str], path: Path) -> None:
    """Write a UTF-8 text file, whole or not at all: a killed process leaves the old one.

    A lone surrogate, which UTF-8 cannot hold, becomes its escape (JSON's own).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.parent / f".{path.name}.unfinished-{uuid4().hex}"
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as f:
            f.writelines(f"{line}\n" for line in lines)
            f.flush()
            os.fsync(f.fileno())  # or a power cut could leave the new name on an empty file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _line(record: Record) -> str:
    # Not asdict: it copies every hit, and there may be millions.
    row = {name: getattr(record, name) for name in _NAMES}
    row["samples"] = [asdict(sample) for sample in record.samples]
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise RecordError(
            f"system {record.system!r}, backend {record.backend!r}, query {record.query_id!r}: a "
            "score, grade or metric is not a finite number, which JSON cannot hold"
        ) from error


def _read(line: bytes, where: str) -> Record:
    try:
        return _ADAPTER.validate_python(json.loads(line))
    except ValidationError as error:
        raise RecordError(f"{where}: {'; '.join(_faults(error))}") from error
    except ValueError as error:  # no JSON, no UTF-8, or a RecordError
        raise RecordError(f"{where}: {error}") from error


def _faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"]) or "the line"
        yield f"{place}: {str(fault['msg']).removeprefix('Value error, ')}"
