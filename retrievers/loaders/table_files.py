"""Tables: a row is a document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrievers.identity import CollectionError
from retrievers.loaders.fields import IDS, TEXTS, TITLES, identity, joined_fields, named
from retrievers.loaders.file_settings import FileFault, FilesSettings, Found
from retrievers.loaders.rows import read_rows, whole


def table(path: Path, name: str, settings: FilesSettings) -> Iterator[Found | FileFault]:
    """Its rows; instead of one that is malformed, a fault.

    Raises:
        FileFault: the file holds no row, or cannot be read at all or from some row on.
    """
    number = 0
    try:
        for number, (place, row) in enumerate(read_rows(path), 1):
            try:
                yield _document(whole(row), name, number, settings, place)
            except CollectionError as error:
                yield FileFault(str(error), "malformed row")
    except CollectionError as error:
        reason = "rest of a table that cannot be read" if number else "unreadable table"
        raise FileFault(str(error), reason) from error
    if not number:
        raise FileFault(f"{path}: a table without a row; add some, or remove it", "empty table")


def _document(
    row: dict[str, Any], name: str, number: int, settings: FilesSettings, place: str
) -> Found:
    texts = settings.text or (named(row, TEXTS, "text column", place),)
    for column in texts:
        named(row, (column,), "text column", place)
    titles = [
        column for column in ((settings.title,) if settings.title else TITLES) if column in row
    ]
    key = settings.id or next((column for column in IDS if column in row), None)
    if key is None:
        own = f"{name}#row-{number}"
    else:
        own = f"{name}#{identity(row[named(row, (key,), 'id column', place)], place)}"
    rest = {k: v for k, v in row.items() if k not in (key, *texts, *titles)}
    text, title = joined_fields(row, texts, place), joined_fields(row, titles, place)
    return Found(own, title, text, place, facts={**rest, "file": name})
