"""Rewrites made elsewhere, from a JSONL file: {"query_id": "q1", "rewrite": "…"}."""

import logging
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from retrievers.identity import MissingFileError, nfc
from retrievers.loaders.fields import optional_field, text_field
from retrievers.loaders.lines import json_objects, open_lines
from retrievers.queries import Query
from rewriter.records import RecordError, Rewrite

logger = logging.getLogger(__name__)

NOT_IN_FILE = "not_in_file"  # why a query that the file lacks has no rewrite
BLANK_IN_FILE = "blank_in_file"


def read_rewrites(
    path: str | Path, queries: Sequence[Query], *, missing_ok: bool = False
) -> dict[str, Rewrite]:
    """Query id → rewrite.

    Args:
        path: the file. A rewrite that is null or blank sends the raw query, and is counted.
        queries: those that need one; lines about other queries are counted in the log.
        missing_ok: whether a query that the file lacks sends the raw query, and is counted.

    Raises:
        MissingFileError: there is no such file.
        CollectionError: a malformed line; names file and line.
        RecordError: a query has two rewrites, or none and `missing_ok` is off.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"{path} is no file; give JSON lines of query_id and rewrite")
    found: dict[str, Rewrite] = {}
    for number, row in json_objects(open_lines(path), str(path)):
        query, made = _read(row, f"{path}:{number}")
        if query in found:
            raise RecordError(f"{path}:{number}: query {query!r} has a rewrite already; keep one")
        found[query] = made
    wanted = [query.id for query in queries]
    missing = [query for query in wanted if query not in found]
    if missing and not missing_ok:
        raise RecordError(
            f"{path}: {len(missing)} of {len(wanted)} queries have no line, for example "
            f"{missing[0]!r}; add them, or send those raw with --allow_missing"
        )
    if extra := len(found) - (len(wanted) - len(missing)):
        logger.warning("%s: %d lines are about queries that are not evaluated", path, extra)
    return {query: found.get(query, Rewrite(None, NOT_IN_FILE)) for query in wanted}


def _read(row: dict[str, Any], where: str) -> tuple[str, Rewrite]:
    query, text = nfc(text_field(row, "query_id", where)), optional_field(row, "rewrite", where)
    if "rewrite" not in row:
        text = text_field(row, "rewrite", where)  # raises, and says what the line has
    blank = text is None or not text.strip()
    return query, Rewrite(None, BLANK_IN_FILE) if blank else Rewrite(text)


def safe_name(text: str, taken: Container[str]) -> str:
    """A system's name from a folder's or file's: in [A-Za-z0-9_-], and not among those taken."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "rewrites"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
