"""Rows of ViDoRe's data sets, of v1 and of v2 and v3 → pages, queries, judgements."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from retrievers.collection import Query
from retrievers.identity import CollectionError, UnknownNameError
from retrievers.loaders.fields import (
    as_json,
    identity,
    image_bytes,
    joined_fields,
    same,
    text_field,
)
from retrievers.loaders.rows import column_names, read_rows, whole
from retrievers.qrels import Qrels
from retrievers.queries import unique

TEXTS = ("markdown", "text_description", "text")


@dataclass(frozen=True)
class Subset:
    """A data set's files; `pages` are those of v1 where there are no `queries`."""

    name: str
    pages: list[Path]
    queries: list[Path]
    qrels: list[Path]

    @property
    def columns(self) -> list[str]:
        return column_names(self.pages[0])


def pages(subsets: list[Subset], text: str | None) -> Iterator[dict[str, Any]]:
    """The documents. text: as in the settings of the loader.

    Raises:
        As the loader.
    """
    for subset in subsets:
        columns = subset.columns
        if text and text not in columns:
            raise UnknownNameError(f"{subset.pages[0]} has no column {text!r}: {columns}")
        chosen = text if text is not None else next((n for n in TEXTS if n in columns), "")
        rows = ((p, whole(r)) for path in subset.pages for p, r in read_rows(path))
        yield from (
            _corpus(subset, rows, chosen) if subset.queries else _pages_v1(subset, rows, chosen)
        )


def _corpus(
    subset: Subset, rows: Iterator[tuple[str, dict[str, Any]]], text: str
) -> Iterator[dict[str, Any]]:
    for place, row in rows:
        key = same(row, "corpus_id", place)
        yield _page(f"{subset.name}/{identity(row[key], place)}", row, text, place, (key, text))


def _pages_v1(
    subset: Subset, rows: Iterator[tuple[str, dict[str, Any]]], text: str
) -> Iterator[dict[str, Any]]:
    """Each page of v1 once; its further columns belong to the query, and stay there."""
    names = _PageNames(subset.name)
    for place, row in rows:
        page, new = names.of(row, place)
        if new:
            yield _page(page, {"image": row["image"], text: row.get(text)}, text, place, (text,))


class _PageNames:
    """Ids of v1's pages: the file's name, made different where another image has it already."""

    def __init__(self, subset: str) -> None:
        self._subset = subset
        self._digests: dict[str, set[str]] = defaultdict(set)
        self._first: dict[str, str] = {}

    def of(self, row: dict[str, Any], place: str) -> tuple[str, bool]:
        """The id of a row's page, and whether it is met for the first time."""
        name = identity(row.get("image_filename"), place)
        digest = sha256(image_bytes(row.get("image"), place)).hexdigest()
        new = digest not in self._digests[name]
        self._digests[name].add(digest)
        plain = self._first.setdefault(name, digest) == digest
        page = f"{self._subset}/{name}"
        return page if plain else f"{page}~{digest[:8]}", new


def _page(
    page: str, row: dict[str, Any], text: str, place: str, used: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "id": page,
        "text": joined_fields(row, [text], place) if text else "",
        "metadata": as_json({k: v for k, v in row.items() if k not in (*used, "image")}),
        "place": place,
        "image": {"bytes": image_bytes(row.get("image"), place)},
    }


def judged(subset: Subset) -> tuple[list[Query], Qrels]:
    """Queries and judgements of a data set. Raises as the loader."""
    return _judged(subset) if subset.queries else _judged_v1(subset)


def _judged(subset: Subset) -> tuple[list[Query], Qrels]:
    found = []
    for path in subset.queries:
        for place, given in read_rows(path):
            row = whole(given)
            key = same(row, "query_id", place)
            rest = {k: v for k, v in row.items() if k not in (key, "query") and v is not None}
            number = f"{subset.name}/{identity(row[key], place)}"
            words = text_field(row, "query", place)
            found.append((place, Query(number, words, metadata=_parted(subset.name, rest))))
    queries = unique(found)
    judged: Qrels = {query.id: {} for query in queries}
    for path in subset.qrels:
        for place, given in read_rows(path):
            _judge(judged, subset.name, whole(given), place)
    return queries, judged


def _judge(judged: Qrels, subset: str, row: dict[str, Any], place: str) -> None:
    query, page = (
        f"{subset}/{identity(row[same(row, name, place)], place)}"
        for name in ("query_id", "corpus_id")
    )
    score = row.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise CollectionError(f"{place}: score {score!r}, wanted a number")
    if query not in judged:
        raise UnknownNameError(f"{place}: query {query!r} is not in the queries")
    # v3 has a row for each part of a page that answers; they say the same of the page.
    if judged[query].setdefault(page, float(score)) != score:
        raise CollectionError(
            f"{place}: query {query!r} and page {page!r} have score {score} here and "
            f"{judged[query][page]} before; keep one"
        )


def _judged_v1(subset: Subset) -> tuple[list[Query], Qrels]:
    """Queries of v1; their ids are the numbers of the rows where they come first."""
    queries: dict[str, Query] = {}
    judged: Qrels = defaultdict(dict)
    names = _PageNames(subset.name)
    rows = (pair for path in subset.pages for pair in read_rows(path))
    for number, (place, given) in enumerate(rows, 1):
        row = whole(given)
        page, _ = names.of(row, place)
        if row.get("query") is None:
            continue
        text = text_field(row, "query", place)
        if text not in queries:
            shown = ("query", "image", "image_filename", *TEXTS)
            rest = {k: v for k, v in row.items() if k not in shown and v is not None}
            metadata = _parted(subset.name, rest)
            queries[text] = Query(f"{subset.name}/q{number}", text, metadata=metadata)
        judged[queries[text].id][page] = 1.0
    return list(queries.values()), dict(judged)


def _parted(subset: str, rest: Mapping[str, Any]) -> dict[str, Any]:
    language = rest.get("language")
    return {**rest, "subset": f"{subset}/{language}" if language else subset}
