"""Text files line by line: JSON objects and judgements, every fault with its file and line."""

import gzip
import json
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

from retrievers.identity import CollectionError, EmptyCollectionError, UnknownNameError, nfc
from retrievers.qrels import Qrels

HEADER = ("query-id", "corpus-id", "score")
_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WANTED = "three columns apart by tabs: query-id, corpus-id, score"


def open_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a plain or gzip file; see `lines`. Raises CollectionError for a folder."""
    if path.is_dir():
        raise CollectionError(f"{path} is a folder, wanted a file; rename or remove the folder")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
        yield from lines(opened, str(path))


def lines(stream: Iterable[bytes], label: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the lines that are not blank; the first line is 1.

    A byte order mark and CRLF line ends are removed. label: the file's name, for messages.
    Raises CollectionError for what is not UTF-8 and for a damaged gzip file.
    """
    number = 0
    try:
        # Bytes are split at "\n" only; text mode also splits at a lone "\r" within a text.
        for number, raw in enumerate(stream, 1):
            data = raw.removeprefix(_BOM) if number == 1 else raw
            if text := data.rstrip(b"\r\n").decode():
                yield number, text
    except UnicodeDecodeError as error:
        raise CollectionError(f"{label}:{number}: {error}; save the file as UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CollectionError(
            f"{label}: damaged gzip file after line {number} ({error}); fetch or write it again"
        ) from error


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


def check_id(identity: str, where: str) -> None:
    """Raise CollectionError for an id that a line of judgements cannot hold."""
    if _CONTROL.search(identity):
        raise CollectionError(
            f"{where}: id {identity!r} holds a tab, line break or other control character, so that "
            "a TSV file of judgements cannot refer to it; rename it"
        )


def id_field(row: dict[str, Any], key: str, where: str) -> str:
    """Return the id under `key`. Errors as `text_field` and `check_id`."""
    identity = text_field(row, key, where)
    check_id(identity, where)
    return identity


def text_field(row: dict[str, Any], key: str, where: str) -> str:
    """Return the text under `key`. where: "file:line". Raises CollectionError if there is none."""
    if key not in row:
        raise CollectionError(
            f"{where}: no {key!r}; add it (the line has: {', '.join(row) or 'nothing'})"
        )
    value = row[key]
    if not isinstance(value, str):
        raise CollectionError(
            f"{where}: {key!r} is {value!r:.80}, wanted text; put it in quotes, or write an empty "
            f"text where there is none"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        # json reads "\ud800" alone without complaint, but no file or index can hold it.
        raise CollectionError(
            f"{where}: {key!r} holds half a surrogate pair ({error}); remove or repair the escape"
        ) from error
    return value


def optional_field(row: dict[str, Any], key: str, where: str) -> str | None:
    """Return the text under `key`, None where it is missing or null. Errors as `text_field`."""
    return None if row.get(key) is None else text_field(row, key, where)


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
