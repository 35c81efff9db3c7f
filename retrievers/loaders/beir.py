"""Folders in the layout of BEIR, read here and written by `write`.

    corpus.jsonl            {"_id": "d1", "title": "…", "text": "…", "metadata": {…}}
    queries.jsonl           {"_id": "q1", "text": "…", "metadata": {"origin": "synthetic", …}}
    qrels/SPLIT.tsv         query-id, corpus-id, score, with that header, apart by tabs
    qrels/SPLIT.KIND.tsv    further judgements of the same queries, for example test.graded.tsv

`title` and `metadata` may be missing or null, the JSON files may end in .gz. Of a query's metadata,
`origin`, `source` and `reference` become fields of `Query`. A folder with the corpus alone is a
collection without splits. Layout: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
"""

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrievers.collection import Collection, Query
from retrievers.documents import build_table
from retrievers.identity import CollectionError, MissingFileError, Where, index_ids, nfc
from retrievers.loaders.beir_write import write
from retrievers.loaders.lines import (
    id_field,
    json_objects,
    judgements,
    open_lines,
    optional_field,
    text_field,
)
from retrievers.qrels import SOURCE, Qrels

__all__ = ["load", "write"]

QUERY_FIELDS = ("origin", "source", "reference")


def load(folder: str | Path, name: str | None = None) -> Collection:
    """Load a folder. name: the collection's, by default the folder's.

    Judgements of documents that are not in the corpus stay in the qrels and are listed in
    `dangling`; queries that no split judges are counted in `left_out`.

    Raises:
        MissingFileError: no such folder, no corpus, or judgements without queries.
        EmptyCollectionError: a file that holds nothing.
        CollectionError: a malformed line; the message holds the file, the line and the fix.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise MissingFileError(f"{folder} is no folder; give the one that holds corpus.jsonl")
    corpus = _find(folder, "corpus.jsonl")
    if corpus is None:
        raise MissingFileError(f"{folder / 'corpus.jsonl'} (or .gz) is missing; add the documents")
    documents, where = _documents(corpus)
    queries = _queries(_find(folder, "queries.jsonl"))
    qrels = _splits(folder, queries)
    return Collection(name or folder.resolve().name, documents, queries, qrels, where=where)


def _find(folder: Path, name: str) -> Path | None:
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
    if len(found) > 1:
        raise CollectionError(f"{found[0]} and {found[1]} are both there; remove one of them")
    return found[0] if found else None


def _documents(path: Path) -> tuple[pa.Table, Where]:
    numbers = array("Q")

    def rows() -> Iterator[dict[str, str | None]]:
        for number, row in json_objects(open_lines(path), str(path)):
            numbers.append(number)
            yield _document(row, f"{path}:{number}")

    return build_table(rows(), extra=["metadata"]), lambda row: f"{path}:{numbers[row]}"


def _document(row: dict[str, Any], where: str) -> dict[str, str | None]:
    metadata = _metadata(row, where)
    return {
        "id": id_field(row, "_id", where),
        "title": optional_field(row, "title", where),
        "text": text_field(row, "text", where),
        "metadata": json.dumps(metadata) if metadata else None,
    }


def _metadata(row: dict[str, Any], where: str) -> dict[str, Any]:
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise CollectionError(
            f"{where}: 'metadata' is {metadata!r:.80}, wanted an object; put it in braces"
        )
    return dict(metadata)


def _queries(path: Path | None) -> list[Query]:
    if path is None:
        return []
    places, queries = [], []
    for number, row in json_objects(open_lines(path), str(path)):
        places.append(f"{path}:{number}")
        queries.append(_query(row, places[-1]))
    index_ids((query.id for query in queries), "query", lambda row: places[row])
    return queries


def _query(row: dict[str, Any], where: str) -> Query:
    identity, text = id_field(row, "_id", where), text_field(row, "text", where)
    metadata = _metadata(row, where)
    known = {key: optional_field(metadata, key, where) for key in QUERY_FIELDS}
    rest = {key: value for key, value in metadata.items() if key not in known}
    origin = known.pop("origin") or "human"
    try:
        return Query(identity, text, origin, metadata=rest, **known)
    except CollectionError as error:
        raise CollectionError(f"{where}: {error}") from error


def _splits(folder: Path, queries: list[Query]) -> dict[str, dict[str, Qrels]]:
    # "test.tsv" comes before "test.graded.tsv", which judges the same queries.
    paths = sorted((folder / "qrels").glob("*.tsv"), key=lambda path: path.stem.split("."))
    if paths and not queries:
        raise MissingFileError(f"{folder / 'queries.jsonl'} is missing, but {paths[0]} judges them")
    known = {nfc(query.id) for query in queries}
    splits: dict[str, dict[str, Qrels]] = {}
    for path in paths:
        split, _, kind = path.stem.partition(".")
        if not kind:
            read = judgements(open_lines(path), str(path), known, "queries.jsonl")
            splits[split] = {SOURCE: read}
        elif kind == SOURCE or split not in splits:
            raise MissingFileError(f"{path} needs {split}.tsv beside it; add it, or rename this")
        else:
            held = splits[split][SOURCE]
            splits[split][kind] = judgements(open_lines(path), str(path), held, f"{split}.tsv")
    return splits
