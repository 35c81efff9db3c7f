"""Folders in the layout of BEIR, read here and written by `write`.

    corpus.jsonl            {"_id": "d1", "title": "…", "text": "…", "metadata": {…}}
    queries.jsonl           {"_id": "q1", "text": "…", "metadata": {"origin": "synthetic", …}}
    qrels/SPLIT.tsv         query-id, corpus-id, score, with that header, apart by tabs
    qrels/SPLIT.KIND.tsv    further judgements of the same queries, for example test.graded.tsv

`title` and `metadata` may be missing or null, the JSON files may end in .gz. Of a query's metadata,
`origin`, `source` and `reference` become fields of `Query`. A folder with the corpus alone is a
collection without splits. Layout: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset

On the hub the corpus and the queries may also be Parquet files of these columns, corpus/corpus-*
and queries/queries-*, and the judgements a data set of their own, such as BeIR/scifact-qrels.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrievers.collection import Collection, Query
from retrievers.identity import (
    CollectionError,
    EmptyCollectionError,
    MissingFileError,
    check_safe,
    nfc,
)
from retrievers.loaders.beir_write import write
from retrievers.loaders.fields import id_field, metadata_field, optional_field, text_field
from retrievers.loaders.hub import data_files, dataset_folder, short_name
from retrievers.loaders.lines import judgements, open_lines
from retrievers.loaders.rows import read_rows, whole
from retrievers.loaders.storing import places, store
from retrievers.qrels import SOURCE, Qrels
from retrievers.queries import unique

__all__ = ["load", "write"]

QUERY_FIELDS = ("origin", "source", "reference")
# Judgements that this layout does not read: a folder of them alone would seem to hold none.
OTHERS = (".json", ".trec", ".qrels", ".txt", ".csv", ".tsv.gz")


def load(
    folder: str | Path,
    name: str | None = None,
    qrels: str | Path | None = None,
    revision: str | None = None,
) -> Collection:
    """Load a folder.

    Args:
        folder: the folder, or hub:OWNER/NAME.
        name: the collection's, by default the folder's.
        qrels: folder with SPLIT.tsv, or hub:OWNER/NAME; by default the folder's own qrels/.
        revision: of the hub's.

    Judgements of documents that are not in the corpus stay in the qrels and are listed in
    `dangling`; queries that no split judges are counted in `left_out`.

    Raises:
        MissingFileError: no such folder, no corpus, or judgements without queries.
        EmptyCollectionError: a file that holds nothing.
        CollectionError: a malformed line; the message holds the file, the line and the fix.
    """
    place = dataset_folder(folder, revision)
    corpus = _find(place, "corpus")
    if not corpus:
        raise MissingFileError(f"{place / 'corpus.jsonl'} (or .gz) is missing; add the documents")
    table, _ = store(corpus, {"layout": "beir"}, lambda _: _documents(corpus))
    queries = _queries(_find(place, "queries"))
    judged = dataset_folder(qrels, None) if qrels is not None else place / "qrels"
    splits = _splits(judged, place / "queries.jsonl", queries)
    return Collection(name or short_name(folder), table, queries, splits, where=places(table))


def _find(folder: Path, what: str) -> list[Path]:
    name = f"{what}.jsonl"
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
    if len(found) > 1:
        raise CollectionError(f"{found[0]} and {found[1]} are both there; remove one of them")
    return found or (data_files(folder, what, what) if (folder / what).is_dir() else [])


def _rows(files: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = None
    for path in files:
        for place, row in read_rows(path):
            yield place, whole(row)
    if place is None:
        raise EmptyCollectionError(f"{files[0]} is empty; it wants one JSON object a line")


def _documents(files: list[Path]) -> Iterator[dict[str, str | None]]:
    for place, row in _rows(files):
        yield _document(row, place)


def _document(row: dict[str, Any], where: str) -> dict[str, str | None]:
    metadata = metadata_field(row, where)
    return {
        "id": id_field(row, "_id", where),
        "title": optional_field(row, "title", where),
        "text": text_field(row, "text", where),
        "metadata": json.dumps(metadata) if metadata else None,
        "place": where,
    }


def _queries(files: list[Path]) -> list[Query]:
    if not files:
        return []
    return unique((place, _query(row, place)) for place, row in _rows(files))


def _query(row: dict[str, Any], where: str) -> Query:
    identity, text = id_field(row, "_id", where), text_field(row, "text", where)
    metadata = metadata_field(row, where)
    known = {key: optional_field(metadata, key, where) for key in QUERY_FIELDS}
    rest = {key: value for key, value in metadata.items() if key not in known}
    origin = known.pop("origin") or "human"
    try:
        return Query(identity, text, origin, metadata=rest, **known)
    except CollectionError as error:
        raise CollectionError(f"{where}: {error}") from error


def _splits(folder: Path, asked: Path, queries: list[Query]) -> dict[str, dict[str, Qrels]]:
    # "test.tsv" comes before "test.graded.tsv", which judges the same queries.
    paths = sorted(folder.glob("*.tsv"), key=lambda path: path.stem.split("."))
    if paths and not queries:
        raise MissingFileError(f"{asked} is missing, but {paths[0]} judges them")
    others = [path for path in sorted(folder.glob("*")) if path.name.endswith(OTHERS)]
    if others and not paths:
        raise CollectionError(
            f"{others[0]}: judgements are read from {folder.name}/SPLIT.tsv here; write the file "
            "as such, or take the loader trec, which reads other forms"
        )
    known = {nfc(query.id) for query in queries}
    splits: dict[str, dict[str, Qrels]] = {}
    for path in paths:
        split, _, kind = path.stem.partition(".")
        check_safe(split, f"{path}: split")
        if not kind:
            read = judgements(open_lines(path), str(path), known, "queries.jsonl")
            splits[split] = {SOURCE: read}
        elif kind == SOURCE or split not in splits:
            raise MissingFileError(f"{path} needs {split}.tsv beside it; add it, or rename this")
        else:
            held = splits[split][SOURCE]
            splits[split][kind] = judgements(open_lines(path), str(path), held, f"{split}.tsv")
    return splits
