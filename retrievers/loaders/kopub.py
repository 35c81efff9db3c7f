"""SDS KoPub VDR: 600 Korean questions over 40,781 pages of public documents, in two tasks.

    SDS-KoPub-QA            query, ground_truth: row numbers of the corpus, the first is 0
    SDS-KoPub-corpus        id, image, and one or more columns of the page's text
    SDS-KoPub-annotations   file_id, page_indices: row numbers of the file's pages

Task "text" searches the texts of one column, which is named here and in the collection's name; its
documents have no images. Task "image" searches the page images; its documents have no texts.
https://huggingface.co/datasets/SamsungSDS-Research/SDS-KoPub-VDR-Benchmark
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pydantic import model_validator

from retrievers.collection import Collection, Query
from retrievers.conventions import Conventions
from retrievers.documents import values
from retrievers.identity import CollectionError, MissingFileError, UnknownNameError
from retrievers.loaders.fields import as_json, identity, image_bytes, joined_fields, text_field
from retrievers.loaders.hub import data_files, dataset_folder
from retrievers.loaders.rows import column_names, read_rows, whole
from retrievers.loaders.settings import LoaderSettings
from retrievers.loaders.storing import places, store
from retrievers.qrels import SOURCE, Qrels
from retrievers.queries import unique

QA, CORPUS, ANNOTATIONS = (f"SDS-KoPub-{part}" for part in ("QA", "corpus", "annotations"))
SAME = "same_image_as"  # in the metadata of a page whose image came before


class KoPubSettings(LoaderSettings):
    """What is loaded.

    Attributes:
        folder: a local copy, or hub:SamsungSDS-Research/SDS-KoPub-VDR-Benchmark.
        revision: of the hub's.
        task: "text" or "image".
        text: for the task "text", the corpus column that is searched: parsed and recognised (OCR)
            text give different results.
        duplicates: pages with the same image as an earlier one: "keep" them with a note in their
            metadata, or "merge" them with the first, in the judgements too.
        split: of the data set, and of the collection.
    """

    folder: str
    revision: str | None = None
    task: Literal["text", "image"]
    text: str | None = None
    duplicates: Literal["keep", "merge"] = "keep"
    split: str = "test"

    @model_validator(mode="after")
    def _named(self) -> "KoPubSettings":
        if (self.task == "text") != bool(self.text):
            raise ValueError(
                "the task 'text' needs `text`, the name of the corpus column that is searched, and "
                "the task 'image' takes none"
            )
        return self


def load(settings: KoPubSettings) -> Collection:
    """Load a collection.

    Raises:
        MissingFileError: no such folder, or a file is missing.
        UnknownNameError: the corpus has no column `text`.
        CollectionError: a row that is not as published; names file and row.
    """
    folder = dataset_folder(settings.folder, settings.revision)
    corpus = data_files(folder, CORPUS, settings.split)
    _check_column(corpus[0], settings.text)
    files = _files_of_pages(folder, settings.split)
    table, left_out = store(
        corpus,
        {"text": settings.text, "files": {str(row): name for row, name in files.items()}},
        lambda _: _pages(corpus, settings.text, files),
        images=settings.task == "image",
    )
    ids, firsts = _firsts(table)
    if settings.duplicates == "merge" and firsts:
        table = _without(table, set(firsts))
        left_out = {**left_out, "page image that was there already": len(firsts)}
        ids = [firsts.get(page, page) for page in ids]
    queries, judged = _asked(data_files(folder, QA, settings.split), ids)
    return Collection(
        settings.name or f"kopub-{settings.text or 'image'}",
        table,
        queries,
        {settings.split: {SOURCE: judged}},
        left_out=left_out,
        where=places(table),
        conventions=Conventions("recall@5"),
    )


def _check_column(corpus: Path, text: str | None) -> None:
    if text and text not in (columns := column_names(corpus)):
        raise UnknownNameError(
            f"{corpus} has no column {text!r}; it has: {', '.join(columns)}; set `text` to the one "
            "with the pages' texts"
        )


def _files_of_pages(folder: Path, split: str) -> dict[int, str]:
    """Corpus row → file, as far as the annotations say; a copy may be without them."""
    try:
        files = data_files(folder, ANNOTATIONS, split)
    except MissingFileError:
        return {}
    found = {}
    for path in files:
        for place, given in read_rows(path, ("file_id", "page_indices")):
            row = whole(given)
            name = identity(row.get("file_id"), place)
            found.update(dict.fromkeys(_row_numbers(row, "page_indices", place), name))
    return found


def _pages(corpus: list[Path], text: str | None, files: dict[int, str]) -> Iterator[dict[str, Any]]:
    first: dict[bytes, str] = {}
    columns = ["id", "image", *([text] if text else [])]
    rows = (pair for path in corpus for pair in read_rows(path, columns))
    for number, (place, given) in enumerate(rows):
        row = whole(given)
        page, image = identity(row.get("id"), place), image_bytes(row.get("image"), place)
        same = first.setdefault(sha256(image).digest(), page)
        facts = {"file": files.get(number), SAME: None if same == page else same}
        found = {"id": page, "metadata": as_json(facts), "place": place}
        # The task decides what there is to search; a page has never both.
        if text:
            yield {**found, "text": joined_fields(row, [text], place)}
        else:
            yield {**found, "text": "", "image": {"bytes": image}}


def _firsts(table: pa.Table) -> tuple[list[str], dict[str, str]]:
    """Ids by corpus row, and page → the first page with the same image."""
    ids, firsts = [], {}
    for page, metadata in values(table, "id", "metadata"):
        ids.append(page)
        if metadata and (same := json.loads(metadata).get(SAME)):
            firsts[page] = same
    return ids, firsts


def _without(table: pa.Table, dropped: set[str]) -> pa.Table:
    """The other rows, as slices: nothing is copied, the images stay on the disk."""
    kept = []
    start = 0
    for row, (page,) in enumerate(values(table, "id")):
        if page in dropped:
            kept.append(table.slice(start, row - start))
            start = row + 1
    return pa.concat_tables([*kept, table.slice(start)])


def _asked(files: list[Path], ids: list[str]) -> tuple[list[Query], Qrels]:
    found: list[tuple[str, Query]] = []
    judged: Qrels = {}
    rows = (pair for path in files for pair in read_rows(path))
    for number, (place, given) in enumerate(rows, 1):
        row = whole(given)
        gold = _row_numbers(row, "ground_truth", place)
        if outside := [one for one in gold if not 0 <= one < len(ids)]:
            raise CollectionError(
                f"{place}: ground_truth {outside[0]} is no row of the corpus, which has "
                f"{len(ids)}; fetch both files in the same revision"
            )
        rest = {k: v for k, v in row.items() if k not in ("query", "ground_truth", "id")}
        key = identity(row["id"], place) if row.get("id") is not None else f"q{number}"
        kept = {name: value for name, value in rest.items() if value is not None}
        found.append((place, Query(key, text_field(row, "query", place), metadata=kept)))
        judged[key] = {ids[one]: 1.0 for one in gold}
    return unique(found), judged


def _row_numbers(row: dict[str, Any], column: str, place: str) -> list[int]:
    found = row.get(column)
    numbers = found if isinstance(found, list) else [found]
    whole_numbers = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    if len(whole_numbers) < len(numbers):
        raise CollectionError(f"{place}: {column} is {found!r:.80}, wanted whole numbers")
    return whole_numbers
