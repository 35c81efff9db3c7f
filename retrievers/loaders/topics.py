"""TREC topics, as XML and as the older form without end tags.

<topic number="1"><query>…</query></topic>
<top><num> Number: 301 <title> …</top>
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from retrievers.identity import CollectionError
from retrievers.loaders.fields import QUERY_IDS, QUERY_TEXTS, identity, named
from retrievers.loaders.lines import whole_text
from retrievers.queries import Query

# What old TREC topics write before a field's text.
_LABEL = re.compile(r"^(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_TOP = re.compile(r"<top>((?:(?!<top>).)*?)</top>", re.IGNORECASE | re.DOTALL)
_BEGIN = re.compile(r"<top>", re.IGNORECASE)
# A field's text goes on to the next tag; a "<" that begins none is part of the text.
_FIELD = re.compile(r"<(\w+)(?:\s[^<>]*)?>((?:[^<]|<(?!/?[A-Za-z]\w*(?:\s[^<>]*)?>))*)")
_TOPIC = re.compile(r"<(?:[\w.-]+:)?topic[\s/>]", re.IGNORECASE)


def topics(path: Path, field: str | None) -> Iterator[tuple[str, Query]]:
    """The queries in a file of topics, with their places. field: see `read_queries`.

    Raises:
        CollectionError: a malformed topic, or one that is not whole; names file and line.
    """
    text = whole_text(path)
    found = _sgml(text, path) if _BEGIN.search(text) else _xml(text, path)
    for place, fields in found:
        key = named(fields, ("num", *QUERY_IDS), "topic number", place)
        name = named(fields, (field,) if field else ("title", *QUERY_TEXTS), "topic text", place)
        if isinstance(fields[name], list):
            raise CollectionError(f"{place}: {name!r} is there {len(fields[name])} times; keep one")
        rest = {k: v for k, v in fields.items() if k not in (key, name)}
        yield place, Query(identity(fields[key], place), fields[name], metadata=rest)


def _fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Name → text; a list of texts where a name comes again, such as those of subtopics."""
    found = defaultdict(list)
    for name, text in pairs:
        found[name.lower()].append(text)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in found.items()}


def _sgml(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Topics whose fields have no end tags."""
    for begin in _BEGIN.finditer(text):
        place = f"{path}:{_line(text, begin.start())}"
        top = _TOP.match(text, begin.start())
        if top is None:  # it would swallow the next topic, or be lost
            raise CollectionError(f"{place}: <top> without its </top>; add it")
        found = ((name, _LABEL.sub("", raw.strip())) for name, raw in _FIELD.findall(top[1]))
        yield place, _fields((name, " ".join(html.unescape(raw).split())) for name, raw in found)


def _xml(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise CollectionError(f"{path}:{line}: no XML: {error}; correct the file") from error
    topics = [element for element in root.iter() if _tag(element) == "topic"]
    starts = [match.start() for match in _TOPIC.finditer(text)]
    # Comments may hold more of them: then no line is sure.
    sure = len(starts) == len(topics)
    for number, topic in enumerate(topics):
        place = f"{path}:{_line(text, starts[number])}" if sure else f"{path}: topic {number + 1}"
        fields = [(_tag(part), _text(part)) for part in topic]
        # Text beside the parts is no list of fields, but one text with parts of it marked.
        marked = any(beside and beside.strip() for beside in (topic.text, *_tails(topic)))
        own = [("text", _text(topic))] if marked or not fields else fields
        yield place, _fields([*topic.attrib.items(), *own])


def _tag(element: Any) -> str:
    """Its name without the name space."""
    return str(element.tag).rpartition("}")[2].lower()


def _tails(element: Any) -> Iterator[str | None]:
    yield from (part.tail for part in element)


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
