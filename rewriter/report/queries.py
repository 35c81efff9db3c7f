"""Records → the tables behind the page's list of queries, with every text and id written once.

Two parts, as the page needs them: the list (texts, values, ranks), which it sorts and searches at
once, and the hits, which it needs when a query is opened.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewriter.evaluation import HEADLINE
from rewriter.evaluation.changes import by_change, in_sight
from rewriter.records import Record, by
from rewriter.report.gather import Source
from rewriter.report.summary import main_system
from rewriter.tables import heading

NONE = -1


@dataclass
class Numbered:
    """Texts and their numbers, in order of appearance."""

    texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str | None) -> int:
        """The text's number; −1 for None."""
        if text is None:
            return NONE
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


@dataclass(frozen=True)
class Queries:
    """What the page gets, and what the choice of texts and thumbnails goes by.

    Attributes:
        listed: data of the list.
        found: data of the hits, by numbers of `documents`.
        documents: ids of all documents that were hit or judged.
        order: (query, documents' numbers: judged ones first, then hits by rank), by size of the
            largest change against the baseline on any backend.
    """

    listed: dict[str, Any]
    found: dict[str, Any]
    documents: list[str]
    order: list[tuple[str, list[int]]]


def code(source: Source) -> Queries:
    """Number everything."""
    known = _first(source.records)
    cells = _grid(source, [record.query_id for record in known])
    documents = Numbered()
    found = _found(source, known, cells, documents)
    listed = _list(source, known, cells)
    return Queries(listed, found, documents.texts, _order(source, known, found))


Row = list[Record | None]  # one system on one backend, in the order of the queries
Grid = dict[str, dict[str, Row]]  # backend → system → row


def _list(source: Source, known: Sequence[Record], cells: Grid) -> dict[str, Any]:
    strings = Numbered()
    found = dict.fromkeys(key for record in source.records for key in record.metrics)
    keys = sorted(found, key=lambda key: key != HEADLINE)
    return {
        "baseline": source.baseline,
        "main": main_system(source) or next(reversed(source.systems), None),
        "systems": {name: source.label(name) for name in source.systems},
        "measures": keys,
        "names": {key: heading(key) for key in keys},
        "ids": [record.query_id for record in known],
        "query": [strings.number(record.query) for record in known],
        "origin": [strings.number(record.origin) for record in known],
        "cells": {
            backend: {system: _listed(row, keys, strings) for system, row in systems.items()}
            for backend, systems in cells.items()
        },
        "strings": strings.texts,
    }


def _found(
    source: Source, known: Sequence[Record], cells: Grid, documents: Numbered
) -> dict[str, Any]:
    return {
        "judged": [
            [
                part
                for document, grade in source.judged.get(record.query_id, {}).items()
                for part in (documents.number(document), _short(grade))
            ]
            for record in known
        ],
        "source": [documents.number(record.source) for record in known],
        "cells": {
            backend: {system: _hits(row, documents) for system, row in systems.items()}
            for backend, systems in cells.items()
        },
        "ids": documents.texts,
    }


def _grid(source: Source, ids: Sequence[str]) -> Grid:
    grid: Grid = {}
    for backend, rows in by(source.records, "backend").items():
        for system, found in by(rows, "system").items():
            records = {record.query_id: record for record in found}
            grid.setdefault(backend, {})[system] = [records.get(query) for query in ids]
    return grid


def _first(records: Iterable[Record]) -> list[Record]:
    """One record of each query, in order of appearance."""
    first: dict[str, Record] = {}
    for record in records:
        first.setdefault(record.query_id, record)
    return list(first.values())


def _listed(row: Row, keys: Sequence[str], strings: Numbered) -> dict[str, Any]:
    return {
        "samples": max((len(record.samples) for record in row if record), default=0),
        "error": [strings.number(record.error) if record else NONE for record in row],
        "rewrite": [strings.number(record.rewrite) if record else NONE for record in row],
        "text": [strings.number(record.text) if record else NONE for record in row],
        "failure": [strings.number(record.failure) if record else NONE for record in row],
        "rank": [_rank(record) if record else 0 for record in row],
        "values": {
            key: [
                _short(record.metrics[key]) if record and key in record.metrics else None
                for record in row
            ]
            for key in keys
        },
    }


def _rank(record: Record) -> int:
    """Of the first relevant hit; 0 if there is none."""
    return next((rank for rank, grade in enumerate(record.grades, 1) if grade > 0), 0)


def _hits(row: Row, documents: Numbered) -> dict[str, Any]:
    return {
        "hits": [
            [documents.number(hit.id) for hit in record.hits] if record else [] for record in row
        ],
        "scores": [[_short(hit.score) for hit in record.hits] if record else [] for record in row],
    }


def _short(number: float) -> float | int:
    """Four significant digits and no needless ".0": what is shown."""
    short = float(f"{number:.4g}")
    return int(short) if short.is_integer() else short


def _order(
    source: Source, known: Sequence[Record], found: dict[str, Any]
) -> list[tuple[str, list[int]]]:
    rows = [cell["hits"] for systems in found["cells"].values() for cell in systems.values()]
    places = {record.query_id: place for place, record in enumerate(known)}
    return [
        (query, in_sight(found["judged"][place][::2], [row[place] for row in rows]))
        for query in by_change(source.records, source.baseline)
        for place in [places[query]]
    ]
