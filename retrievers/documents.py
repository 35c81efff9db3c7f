"""Documents in Arrow: the row view, the table's columns, their fingerprint."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrievers.identity import CollectionError

COLUMNS = ("id", "title", "text")
BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Document:
    """One row of the documents. A missing title or text is the empty text."""

    id: str
    title: str
    text: str


def build_table(rows: Iterable[Mapping[str, str | None]], extra: Sequence[str] = ()) -> pa.Table:
    """Arrow table from rows with `id`, `title`, `text` and the `extra` text columns, streamed."""
    schema = pa.schema([(name, pa.string()) for name in (*COLUMNS, *extra)])
    source = iter(rows)
    batches = []
    while batch := list(islice(source, BATCH_ROWS)):
        batches.append(pa.RecordBatch.from_pylist(batch, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def checked_table(table: pa.Table, name: str) -> pa.Table:
    """The table with a `title` column in any case. name: the collection's, for messages.

    Raises:
        CollectionError: `id` or `text` is missing, or one of the three is no text column.
    """
    if "title" not in table.column_names:
        table = table.append_column("title", pa.nulls(len(table), pa.string()))
    for column in COLUMNS:
        if table.column_names.count(column) != 1:
            raise CollectionError(
                f"collection {name!r}: the documents need one column {column!r}; there are: "
                f"{', '.join(table.column_names)}"
            )
        kind = table.schema.field(column).type
        if kind not in (pa.string(), pa.large_string(), pa.null()):
            raise CollectionError(
                f"collection {name!r}: column {column!r} is {kind}, wanted text; cast it to string"
            )
    return table


def with_ids(table: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Replace the `id` column."""
    return table.set_column(table.column_names.index("id"), "id", pa.array(ids, pa.string()))


def values(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the named columns' values row by row, a record batch in memory at a time."""
    for batch in table.select(columns).to_batches(max_chunksize=BATCH_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def fingerprint(table: pa.Table) -> str:
    """SHA-256 (hexadecimal) of ids, titles and texts in order; a null is an empty text.

    Columns are hashed as Arrow holds them, however they are cut into chunks: a million documents
    take the time to read their bytes.
    """
    digest = sha256()
    for name in COLUMNS:
        # The lengths keep ("ab", "c") apart from ("a", "bc").
        lengths, content = sha256(), sha256()
        for chunk in table.column(name).chunks:
            ends, values = _buffers(pc.fill_null(chunk.cast(pa.large_string()), ""))
            lengths.update(np.diff(ends).tobytes())
            content.update(values)
        digest.update(lengths.digest() + content.digest())
    return digest.hexdigest()


def _buffers(texts: pa.LargeStringArray) -> tuple[NDArray[np.int64], memoryview]:
    """(n + 1,) where the texts begin and end, and their bytes in a row."""
    _, offsets, values = texts.buffers()
    if not len(texts):
        return np.zeros(1, dtype=np.int64), memoryview(b"")
    ends = np.frombuffer(offsets, dtype="<i8")[texts.offset : texts.offset + len(texts) + 1]
    return ends, memoryview(values or b"")[ends[0] : ends[-1]]
