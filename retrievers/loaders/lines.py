"""Text files line by line: JSON objects and judgements, every fault with its file and line."""

import gzip
import json
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

from retrievers.identity import CollectionError, EmptyCollectionError, UnknownNameError, nfc
from retrievers.loaders.fields import check_id
from retrievers.qrels import Qrels

HEADER = ("query-id", "corpus-id", "score")
_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WANTED = "three columns apart by tabs: query-id, corpus-id, score"


def open_bytes(path: Path) -> AbstractContextManager[Iterable[bytes]]:
    """A plain or gzip file. Raises CollectionError for a folder."""
    if path.is_dir():
        raise CollectionError(f"{path} is a folder, wanted a file; rename or remove the folder")
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def open_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a plain or gzip file; see `lines`. Raises CollectionError for a folder."""
    with open_bytes(path) as opened:
        yield from lines(opened, str(path))


def whole_text(path: Path) -> str:
    """All of a plain or gzip file, each line where it is in the file. Errors as `lines`."""
    found: list[str] = []
    for number, text in open_lines(path):
        found += [""] * (number - 1 - len(found))
        found.append(text)
    return "\n".join(found)


def lines(stream: Iterable[bytes], label: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the lines that are not blank; the first line is 1.

    A byte order mark and CRLF line ends are removed. label: the file's name, for messages.
    Raises CollectionError for what is not UTF-8 and for a damaged gzip file.
    """
    for number, raw in raw_lines(stream, label):
        yield number, decoded(raw, f"{label}:{number}")


def raw_lines(stream: Iterable[bytes], label: str) -> Iterator[tuple[int, bytes]]:
    """As `lines`, not decoded yet: a reader may go on after a line that is not UTF-8."""
    number = 0
    try:
        # Bytes are split at "\n" only; text mode also splits at a lone "\r" within a text.
        for number, raw in enumerate(stream, 1):
            data = raw.removeprefix(_BOM) if number == 1 else raw
            if kept := data.rstrip(b"\r\n"):
                yield number, kept
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CollectionError(
            f"{label}: damaged gzip file after line {number} ({error}); fetch or write it again"
        ) from error


def decoded(raw: bytes, where: str) -> str:
    """The text of a line. Raises CollectionError for what is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise CollectionError(f"{where}: {error}; save the file as UTF-8") from error


def json_objects(
    source: Iterable[tuple[int, str]], label: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of JSON lines. Raises CollectionError, also for an empty file."""
    number = 0
    for number, text in source:
        try:
            row = json.loads(text, object_pairs_hook=_once)
        except CollectionError as error:
            raise CollectionError(f"{label}:{number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise CollectionError(
                f"{label}:{number}: no JSON ({error}): {text[:80]!r}; each line is one JSON object"
            ) from error
        if not isinstance(row, dict):
            raise CollectionError(
                f"{label}:{number}: {text[:80]!r} is {type(row).__name__}; each line is one JSON "
                f"object, in braces"
            )
        yield number, row
    if not number:
        raise EmptyCollectionError(f"{label} is empty; it wants one JSON object a line")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; json alone would keep the last of two values for one key and say nothing."""
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CollectionError(f"{twice!r} is given twice in one object; keep one of the two")
    return row


def judgements(
    source: Iterable[tuple[int, str]], label: str, known: Container[str], known_from: str
) -> Qrels:
    """Read judgements in BEIR's TSV form: the header line, then one judgement a line.

    source, label: as for `json_objects`. known: the query ids that may be judged, in form NFC.
    known_from: where those come from, for messages.

    Raises:
        EmptyCollectionError: no judgement in the file.
        UnknownNameError: a judged query is not in `known`.
        CollectionError: a malformed line, or a pair judged twice.
    """
    rows = iter(source)
    for number, text in islice(rows, 1):
        _check_header(text, f"{label}:{number}")
    qrels: Qrels = {}
    first: dict[tuple[str, str], int] = {}
    for number, text in rows:
        query, document, grade = _judgement(text, f"{label}:{number}")
        if query not in known:
            raise UnknownNameError(
                f"{label}:{number}: query id {query!r} is not in {known_from}; add the query there "
                f"or remove this line"
            )
        if first.setdefault((query, document), number) != number:
            raise CollectionError(
                f"{label}:{number}: query {query!r} and document {document!r} were judged at "
                f"{label}:{first[query, document]} already; keep one of the two lines"
            )
        qrels.setdefault(query, {})[document] = grade
    if not qrels:
        raise EmptyCollectionError(f"{label} holds no judgement; wanted: a header, then {_WANTED}")
    return qrels


def _check_header(text: str, where: str) -> None:
    # A file without its header would lose its first judgement to a reader that skips one line.
    if tuple(column.strip().lower() for column in text.split("\t")) != HEADER:
        raise CollectionError(
            f"{where}: the first line is {text[:80]!r}, wanted the header of {_WANTED}; add it (a "
            f"TREC file also has a second column, which must go)"
        )


def _judgement(text: str, where: str) -> tuple[str, str, float]:
    columns = text.split("\t")
    if len(columns) != len(HEADER) or not columns[0] or not columns[1]:
        raise CollectionError(f"{where}: {text[:80]!r} has not the {_WANTED}; correct the line")
    for identity in columns[:2]:
        check_id(identity, where)
    return nfc(columns[0]), nfc(columns[1]), number(columns[2], where)


def number(text: str, where: str) -> float:
    """A grade. where: "file:line". Raises CollectionError for what is no finite number."""
    # float alone would also read "1_0" and digits of other scripts, which other readers do not.
    score = text.strip()
    grade = float(score) if _NUMBER.fullmatch(score) else nan
    if not isfinite(grade):
        raise CollectionError(
            f"{where}: score {text!r} is not a finite number in plain digits; write the "
            "grade, as in 1 or 0.5"
        )
    return grade
