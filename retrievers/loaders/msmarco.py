"""MS MARCO v2.1 as published on the hub (microsoft/ms_marco): questions with passages of web pages.

Documents are the distinct passages; one is relevant where `is_selected` is 1. The test split has no
labels: its queries are listed without a relevant document, and its passages serve for synthesis.
A share of the queries is drawn by seed: 1% of the test split are 1,011 of its 101,092 queries.
Not the corpus of the same name in TREC's RAG track, which `retrievers.loaders.trec` reads.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from retrievers.collection import Collection, Query
from retrievers.identity import CollectionError, EmptyCollectionError
from retrievers.loaders.fields import as_json, identity, text_field
from retrievers.loaders.hub import data_files, dataset_folder, short_name
from retrievers.loaders.rows import count_rows, read_rows, whole
from retrievers.loaders.settings import LoaderSettings
from retrievers.loaders.storing import places, store
from retrievers.qrels import SOURCE, Qrels
from retrievers.queries import unique

Share = Annotated[float, Field(gt=0, le=1)]


class MsMarcoSettings(LoaderSettings):
    """What is loaded.

    Attributes:
        folder: a local copy, or hub:microsoft/ms_marco.
        revision: of the hub's.
        config: v2.1 or v1.1.
        splits: split → share of its queries that is drawn.
        seed: of the draw.
        documents: passages "of the drawn queries" only, or "all" of these splits, which is about a
            hundred times as many at a share of 0.01 and takes as much longer. (The RL-QR paper does
            not say which it searched.)
    """

    folder: str
    revision: str | None = None
    config: str = "v2.1"
    splits: dict[str, Share] = Field(default={"test": 0.01}, min_length=1)
    seed: int = 0
    documents: Literal["of the drawn queries", "all"] = "of the drawn queries"


def load(settings: MsMarcoSettings) -> Collection:
    """Load a collection.

    Raises:
        MissingFileError: no such folder, or a file is missing.
        CollectionError: a row that is not as published; names file and row.
    """
    folder = dataset_folder(settings.folder, settings.revision)
    files = {split: data_files(folder, settings.config, split) for split in settings.splits}
    drawn = {split: _drawn(files[split], split, settings) for split in settings.splits}
    options = settings.model_dump(mode="json", include={"splits", "seed", "documents"})
    table, left_out = store(
        [path for paths in files.values() for path in paths],
        options,
        lambda count: _documents(files, None if settings.documents == "all" else drawn, count),
    )
    queries, qrels = _asked(files, drawn)
    name = settings.name or short_name(settings.folder)
    return Collection(name, table, queries, qrels, left_out=left_out, where=places(table))


def _drawn(files: list[Path], split: str, settings: MsMarcoSettings) -> set[int]:
    """Row numbers in a split, the first is 0."""
    rows = sum(map(count_rows, files))
    wanted = round(rows * settings.splits[split])
    if not wanted:
        raise EmptyCollectionError(
            f"{files[0]}: {settings.splits[split]} of {rows} rows is none; raise splits.{split}"
        )
    return set(Random(settings.seed).sample(range(rows), wanted))


def _rows(files: list[Path], drawn: set[int] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    before = 0  # rows of the files before
    for path in files:
        only = None if drawn is None else {number - before for number in drawn}
        for place, row in read_rows(path, only=only):
            yield place, whole(row)
        before += count_rows(path)


def _documents(
    files: dict[str, list[Path]], drawn: dict[str, set[int]] | None, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    seen = set()
    for split, paths in files.items():
        for place, row in _rows(paths, None if drawn is None else drawn[split]):
            for text, url, _ in _passages(row, place):
                if not text.strip():
                    left_out["blank passage"] += 1
                elif (key := _passage_id(text)) not in seen:
                    seen.add(key)
                    metadata = as_json({"url": url})
                    yield {"id": key, "text": text, "metadata": metadata, "place": place}


def _asked(
    files: dict[str, list[Path]], drawn: dict[str, set[int]]
) -> tuple[list[Query], dict[str, dict[str, Qrels]]]:
    found: list[tuple[str, Query]] = []
    splits = {}
    for split, paths in files.items():
        judged: Qrels = {}
        for place, row in _rows(paths, drawn[split]):
            query = _query(row, place)
            found.append((place, query))
            relevant = (text for text, _, label in _passages(row, place) if label == 1)
            judged[query.id] = {_passage_id(text): 1.0 for text in relevant if text.strip()}
        splits[split] = {SOURCE: judged}
    return unique(found), splits


def _query(row: dict[str, Any], place: str) -> Query:
    key = identity(row.get("query_id"), place)
    kept = {name: row[name] for name in ("query_type", "answers") if row.get(name)}
    return Query(key, text_field(row, "query", place), metadata=kept)


def _passages(row: dict[str, Any], place: str) -> list[tuple[str, str | None, int]]:
    """(text, URL, label) of each; the label is -1 where it is hidden.

    The hub's form is an object of lists, that of the original files a list of objects.
    """
    given = row.get("passages")
    if isinstance(given, dict):
        texts = given.get("passage_text") or []
        urls = given.get("url") or [None] * len(texts)
        labels = given.get("is_selected") or [-1] * len(texts)
        if not len(texts) == len(urls) == len(labels):
            raise CollectionError(
                f"{place}: {len(texts)} passages, {len(urls)} URLs and {len(labels)} labels; fetch "
                "the file again"
            )
        parts = list(zip(texts, urls, labels, strict=True))
    elif isinstance(given, list) and all(isinstance(one, dict) for one in given):
        parts = [(p.get("passage_text"), p.get("url"), p.get("is_selected", -1)) for p in given]
    else:
        raise CollectionError(f"{place}: 'passages' is {given!r:.80}, wanted lists by name")
    if not all(isinstance(text, str) for text, _, _ in parts):
        raise CollectionError(f"{place}: a passage without text; fetch the file again")
    if wrong := [label for _, _, label in parts if label not in (-1, 0, 1, None)]:
        raise CollectionError(
            f"{place}: 'is_selected' is {wrong[0]!r:.80}, wanted 0 or 1, or -1 where it is hidden"
        )
    return parts


def _passage_id(text: str) -> str:
    """20 hexadecimal digits that depend on the text alone, so on no split and no draw."""
    return blake2b(text.encode(), digest_size=10).hexdigest()
