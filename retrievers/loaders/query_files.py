"""Files of queries alone, in the forms in use.

    .jsonl                {"_id": "q1", "text": "…", …}; other names of the two fields are known too
    .tsv                  query-id, text, apart by a tab; a header of such names is passed over
    .txt                  a query a line; its id is q1, q2, … by line, blank lines counted
    .xml, .sgml, .trec    TREC topics: <topic number="1"> with fields, or <top><num> Number: 301 …

Other endings are read by what the file begins with. All may end in .gz.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError
from retrievers.loaders.fields import (
    QUERY_IDS,
    QUERY_TEXTS,
    identity,
    metadata_field,
    named,
    optional_field,
    text_field,
)
from retrievers.loaders.lines import json_objects, open_lines
from retrievers.loaders.topics import topics
from retrievers.queries import Query, unique

KNOWN = ("origin", "source", "reference")
ENDINGS = {
    "jsonl": "jsonl",
    "json": "jsonl",
    "tsv": "tsv",
    "txt": "txt",
    "xml": "topics",
    "sgml": "topics",
    "trec": "topics",
}


def read_queries(path: str | Path, field: str | None = None) -> list[Query]:
    """Read queries, in the file's order.

    Args:
        path: the file.
        field: of JSON lines and topics, the one that is the query's text; None: the first of text,
            query, title, question that is there.

    Raises:
        MissingFileError: there is no such file.
        EmptyCollectionError: it holds no query.
        DuplicateIdError: an id is there twice; names both lines.
        CollectionError: a malformed line, or a query without text; names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"{path} is no file; give one of queries (.jsonl, .tsv, .txt, .xml)")
    found = list(_READERS[_form(path)](path, field))
    if not found:
        raise EmptyCollectionError(f"{path} holds no query; add some, or give another file")
    queries = unique(found)
    for place, query in found:
        if not query.text.strip():
            raise CollectionError(f"{place}: query {query.id!r} has no text; write one")
    return queries


def _form(path: Path) -> str:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower().removeprefix(".")
    if ending in ENDINGS:
        return ENDINGS[ending]
    first = next((text for _, text in open_lines(path)), "").lstrip()
    if first.startswith("<"):
        return "topics"
    return "jsonl" if first.startswith("{") else "tsv" if "\t" in first else "txt"


def _jsonl(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    for number, row in json_objects(open_lines(path), str(path)):
        place = f"{path}:{number}"
        yield place, _query(row, field, place)


def _query(row: dict[str, Any], field: str | None, place: str) -> Query:
    key = named(row, QUERY_IDS, "query id", place)
    text = named(row, (field,) if field else QUERY_TEXTS, "query text", place)
    # BEIR keeps further fields in `metadata`, others beside the text.
    beside = {name: value for name, value in row.items() if name not in (key, text, "metadata")}
    metadata = {**beside, **metadata_field(row, place)}
    known = {name: optional_field(metadata, name, place) for name in KNOWN}
    rest = {name: value for name, value in metadata.items() if name not in KNOWN}
    words, origin = text_field(row, text, place), known.pop("origin") or "human"
    try:
        return Query(identity(row[key], place), words, origin, metadata=rest, **known)
    except CollectionError as error:
        raise CollectionError(f"{place}: {error}") from error


def _tsv(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    _no_field(path, field)
    for number, line in open_lines(path):
        place = f"{path}:{number}"
        columns = line.split("\t")
        if number == 1 and _is_header(columns):
            continue
        if len(columns) != 2:
            raise CollectionError(
                f"{place}: {line[:80]!r} has {len(columns)} columns, wanted two apart by a tab: "
                "query-id, text"
            )
        yield place, Query(identity(columns[0], place), columns[1])


def _is_header(columns: list[str]) -> bool:
    names = [column.strip().lower() for column in columns]
    return len(names) == 2 and names[0] in QUERY_IDS and names[1] in QUERY_TEXTS


def _txt(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    _no_field(path, field)
    for number, line in open_lines(path):
        if line.strip():
            yield f"{path}:{number}", Query(f"q{number}", line.strip())


def _no_field(path: Path, field: str | None) -> None:
    if field:
        raise CollectionError(f"{path} has no fields; leave out the field {field!r}")


_READERS: dict[str, Callable[[Path, str | None], Iterator[tuple[str, Query]]]] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "txt": _txt,
    "topics": topics,
}
