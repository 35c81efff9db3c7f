"""TREC collections: a corpus of JSON lines in one file or many, topics, judgements.

MS MARCO v2.1 documents and segments are such: `docid`, `title`, `headings`, `body` or `segment`.
What a row holds besides id, title and text is kept as the document's metadata.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from retrievers.collection import Collection, Query
from retrievers.identity import CollectionError, DuplicateIdError, MissingFileError, nfc
from retrievers.loaders.fields import IDS, TEXTS, TITLES, as_json, identity, joined_fields, named
from retrievers.loaders.judgements import read_qrels
from retrievers.loaders.left_out import leave_out
from retrievers.loaders.query_files import read_queries
from retrievers.loaders.rows import TABLES, read_rows, table_kind, whole
from retrievers.loaders.settings import LoaderSettings
from retrievers.loaders.storing import places, store
from retrievers.qrels import SOURCE, Qrels


class TrecSettings(LoaderSettings):
    """Where the files are.

    Attributes:
        corpus: a file, or a folder whose files (.jsonl, .json, .tsv, .csv, .parquet, also .gz) are
            read in the order of their names.
        topics: split → file of topics, see `retrievers.loaders.query_files`.
        qrels: split → file of judgements, see `retrievers.loaders.judgements`. Topics of a split
            without judgements are listed, and none of them has a relevant document.
        field: of the topics, the one that is searched: title, desc, narr, query, …; None: the first
            of title, text, query, question that is there.
        id: column of the documents' ids; None: the first usual name that a row has.
        text: columns of the documents' texts, a line each, such as [headings, body]; none: as `id`.
        bad_rows: what a malformed document does: "stop", or "skip" to count it and go on.
    """

    corpus: Path
    topics: dict[str, Path] = Field(default={})
    qrels: dict[str, Path] = Field(default={})
    field: str | None = None
    id: str | None = None
    text: tuple[str, ...] = ()
    bad_rows: Literal["stop", "skip"] = "stop"


def load(settings: TrecSettings) -> Collection:
    """Load a collection.

    Raises:
        MissingFileError: a file is not there, or judgements without topics.
        CollectionError: a malformed line; names file and line.
    """
    files = _shards(settings.corpus)
    options = settings.model_dump(mode="json", include={"id", "text", "bad_rows"})
    table, left_out = store(files, options, lambda count: _documents(files, settings, count))
    queries, qrels = read_splits(settings.topics, settings.qrels, settings.field)
    name = settings.name or settings.corpus.resolve().name
    return Collection(name, table, queries, qrels, left_out=left_out, where=places(table))


def read_splits(
    topics: Mapping[str, Path], qrels: Mapping[str, Path], field: str | None = None
) -> tuple[list[Query], dict[str, dict[str, Qrels]]]:
    """Queries and judgements of files by split.

    A topic without a judgement stays out of a split that has judgements, as in their evaluation.

    Raises:
        As `load`.
    """
    if alone := [split for split in qrels if split not in topics]:
        raise MissingFileError(f"split {alone[0]!r} has judgements and no topics; give them too")
    queries: dict[str, Query] = {}
    splits = {}
    for split, path in topics.items():
        asked = read_queries(path, field)
        for query in asked:
            held = queries.setdefault(nfc(query.id), query)
            if held.text != query.text:
                raise DuplicateIdError(
                    f"{path}: query {query.id!r} has another text in another split; rename one"
                )
        judged = read_qrels(qrels[split]) if split in qrels else {nfc(q.id): {} for q in asked}
        _check_judged(judged, {nfc(query.id) for query in asked}, split, qrels, path)
        splits[split] = {SOURCE: judged}
    return list(queries.values()), splits


def _check_judged(
    judged: Qrels, asked: set[str], split: str, qrels: Mapping[str, Path], topics: Path
) -> None:
    if unknown := [query for query in judged if query not in asked]:
        raise CollectionError(
            f"{qrels[split]}: {len(unknown)} queries are not in {topics}, for example "
            f"{unknown[0]!r}; add them there or remove their judgements"
        )


def _shards(corpus: Path) -> list[Path]:
    if not corpus.exists():
        raise MissingFileError(f"{corpus} is not there; give the corpus: a file or a folder")
    files = [corpus] if corpus.is_file() else sorted(p for p in corpus.iterdir() if p.is_file())
    found = [path for path in files if table_kind(path) in TABLES]
    if not found:
        raise MissingFileError(f"{corpus}: no file of documents; wanted .jsonl, .json, … or .gz")
    return found


def _documents(
    files: list[Path], settings: TrecSettings, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    for path in files:
        for place, row in read_rows(path):
            try:
                yield _document(whole(row), settings, place)
            except CollectionError as error:
                if settings.bad_rows == "stop":
                    raise
                leave_out(left_out, "malformed document", error)


def _document(row: dict[str, Any], settings: TrecSettings, place: str) -> dict[str, Any]:
    key = named(row, (settings.id,) if settings.id else IDS, "document id", place)
    texts = settings.text or (named(row, TEXTS, "text", place),)
    for name in texts:
        named(row, (name,), "text", place)
    rest = {name: value for name, value in row.items() if name not in (key, *texts, *TITLES)}
    return {
        "id": identity(row[key], place),
        "title": joined_fields(row, (name for name in TITLES if name in row), place),
        "text": joined_fields(row, texts, place),
        "metadata": as_json(rest),
        "place": place,
    }
