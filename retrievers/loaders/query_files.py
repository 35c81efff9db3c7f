"""Files of queries alone, in the forms in use.

    .jsonl                {"_id": "q1", "text": "…", …}; other names of the two fields are known too
    .tsv                  query-id, text, apart by a tab, without a header
    .txt                  a query a line; its id is q1, q2, … by line, blank lines counted
    .xml, .sgml, .trec    TREC topics: <topic number="1"> with fields, or <top><num> Number: 301 …

Other endings are read by what the file begins with. The first three may end in .gz.
"""

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError, index_ids
from retrievers.loaders.fields import QUERY_IDS, QUERY_TEXTS, identity, named
from retrievers.loaders.lines import json_objects, open_lines, optional_field, text_field
from retrievers.queries import Query

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
# What old TREC topics write before a field's text.
_LABEL = re.compile(r"^(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_TOP = re.compile(r"<top>(.*?)</top>", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^<]*)")
_TOPIC = re.compile(r"<topic[\s>]", re.IGNORECASE)


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
    places = [place for place, _ in found]
    index_ids((query.id for _, query in found), "query", lambda row: places[row])
    for place, query in found:
        if not query.text.strip():
            raise CollectionError(f"{place}: query {query.id!r} has no text; write one")
    return [query for _, query in found]


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
    metadata = {**beside, **(row.get("metadata") or {})}
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
        if len(columns) != 2:
            raise CollectionError(
                f"{place}: {line[:80]!r} has {len(columns)} columns, wanted two apart by a tab: "
                "query-id, text"
            )
        yield place, Query(identity(columns[0], place), columns[1])


def _txt(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    _no_field(path, field)
    for number, line in open_lines(path):
        if line.strip():
            yield f"{path}:{number}", Query(f"q{number}", line.strip())


def _no_field(path: Path, field: str | None) -> None:
    if field:
        raise CollectionError(f"{path} has no fields; leave out the field {field!r}")


def _topics(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CollectionError(f"{path}: {error}; save the file as UTF-8") from error
    found = _sgml(text, path) if _TOP.search(text) else _xml(text, path)
    for place, fields in found:
        key = named(fields, ("num", *QUERY_IDS), "topic number", place)
        name = named(fields, (field,) if field else ("title", *QUERY_TEXTS), "topic text", place)
        rest = {k: v for k, v in fields.items() if k not in (key, name)}
        yield place, Query(identity(fields[key], place), fields[name], metadata=rest)


def _sgml(text: str, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Topics whose fields have no end tags."""
    for top in _TOP.finditer(text):
        fields = (
            (name.lower(), _LABEL.sub("", raw.strip())) for name, raw in _FIELD.findall(top[1])
        )
        plain = {name: " ".join(html.unescape(raw).split()) for name, raw in fields}
        yield f"{path}:{_line(text, top.start())}", plain


def _xml(text: str, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise CollectionError(f"{path}:{line}: no XML: {error}; correct the file") from error
    topics = [element for element in root.iter() if str(element.tag).lower() == "topic"]
    starts = [match.start() for match in _TOPIC.finditer(text)]
    for topic, start in zip(topics, starts, strict=False):
        given = {name.lower(): value for name, value in topic.attrib.items()}
        fields = {str(part.tag).lower(): _text(part) for part in topic}
        # Text beside the parts is no list of fields, but one text with parts of it marked.
        marked = any(beside and beside.strip() for beside in (topic.text, *_tails(topic)))
        own = {"text": _text(topic)} if marked or not fields else fields
        yield f"{path}:{_line(text, start)}", {**given, **own}


def _tails(element: Any) -> Iterator[str | None]:
    yield from (part.tail for part in element)


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


_READERS: dict[str, Callable[[Path, str | None], Iterator[tuple[str, Query]]]] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "txt": _txt,
    "topics": _topics,
}
