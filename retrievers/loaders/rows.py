"""Files of rows: Parquet, JSON lines, CSV, TSV. Every row comes with its place."""

import csv
import gzip
import io
import zlib
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders.lines import decoded, json_objects, open_bytes, open_lines, raw_lines

TABLES = ("parquet", "jsonl", "json", "csv", "tsv")  # all but the first also end in .gz
BATCH = 64  # rows decoded at once: a row may hold a page image
LONGEST_FIELD = 2**30  # of CSV; Python's own limit is shorter than some documents

Row: TypeAlias = dict[str, Any]


def table_kind(path: Path) -> str:
    """The ending that says how a file is read, without dot and without .gz: "jsonl"."""
    return Path(path.name.removesuffix(".gz")).suffix.lower().removeprefix(".")


def read_rows(
    path: Path, columns: Sequence[str] | None = None, only: Container[int] | None = None
) -> Iterator[tuple[str, Row | CollectionError]]:
    """Read a file row by row.

    Args:
        path: a Parquet file; JSON lines (.jsonl, .json), CSV or TSV, plain or .gz.
        columns: those wanted of a Parquet file, which spares reading the others; names that it
            lacks are passed over. None: all. Other files give what they have.
        only: numbers of the rows that are wanted, the first is 0; None: all.

    Yields:
        (place, row), the place being file:line, of Parquet file:row with the first row as 1.
        Instead of a row the error of one that is malformed, to be raised or counted.

    Raises:
        MissingFileError: no such file.
        CollectionError: the file cannot be read as what its ending says.
    """
    if path.is_dir():
        raise CollectionError(f"{path} is a folder, wanted a file; rename or remove the folder")
    if not path.is_file():
        raise MissingFileError(f"{path} is no file; give an existing one")
    kind = table_kind(path)
    if kind == "parquet":
        yield from _parquet(path, columns, only)
    elif kind in ("jsonl", "json"):
        yield from _wanted(_json(path), only)
    elif kind in ("csv", "tsv"):
        yield from _wanted(_separated(path, kind), only)
    else:
        raise CollectionError(
            f"{path}: {path.suffix or 'no ending'} is no table; the files taken are "
            f"{', '.join(f'.{one}' for one in TABLES)}"
        )


def _wanted(
    rows: Iterator[tuple[str, Row | CollectionError]], only: Container[int] | None
) -> Iterator[tuple[str, Row | CollectionError]]:
    return (pair for number, pair in enumerate(rows) if only is None or number in only)


def whole(row: Row | CollectionError) -> Row:
    """The row. Raises CollectionError where it is one."""
    if isinstance(row, CollectionError):
        raise row
    return row


def column_names(path: Path) -> list[str]:
    """Columns of a Parquet file, of other files the keys of the first row."""
    if table_kind(path) == "parquet":
        return [str(name) for name in _opened(path).schema_arrow.names]
    for _, row in read_rows(path):
        return [] if isinstance(row, CollectionError) else list(row)
    return []


def count_rows(path: Path) -> int:
    """Rows of a file; of a Parquet file without reading them."""
    if table_kind(path) == "parquet":
        return int(_opened(path).metadata.num_rows)
    return sum(1 for _ in read_rows(path))


def _opened(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without pre_buffer: what is read ahead of a file of images does not fit into memory.
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise CollectionError(f"{path}: no Parquet file: {error}; fetch it again") from error


def _parquet(
    path: Path, columns: Sequence[str] | None, only: Container[int] | None
) -> Iterator[tuple[str, Row]]:
    import pyarrow as pa

    opened = _opened(path)
    names = opened.schema_arrow.names
    chosen = names if columns is None else [name for name in names if name in columns]
    number = 0
    try:
        for batch in opened.iter_batches(BATCH, columns=chosen):
            kept = [row for row in range(len(batch)) if only is None or number + row in only]
            # Most of the time goes into Python objects, which are made of wanted batches alone.
            rows = batch.to_pylist() if kept else []
            for row in kept:
                yield f"{path}:{number + row + 1}", rows[row]
            number += len(batch)
    except (pa.ArrowInvalid, OSError) as error:
        raise CollectionError(
            f"{path}: damaged after row {number}: {error}; fetch it again"
        ) from error


def _json(path: Path) -> Iterator[tuple[str, Row | CollectionError]]:
    with open_bytes(path) as opened:
        for number, raw in raw_lines(opened, str(path)):
            place = f"{path}:{number}"
            try:
                # One line at a time: reading goes on after a line that is malformed.
                (_, row), *_ = json_objects([(number, decoded(raw, place))], str(path))
            except CollectionError as error:
                yield place, error
            else:
                yield place, row


def _separated(path: Path, kind: str) -> Iterator[tuple[str, Row | CollectionError]]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    with (
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened,
        io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as text,
    ):
        # A quote in TSV is a quote; in CSV it may hold line breaks.
        reader = (
            csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
            if kind == "tsv"
            else csv.reader(text, strict=True)
        )
        try:
            yield from _records(reader, str(path))
        except UnicodeDecodeError as error:
            # Text is decoded ahead of the row that is read: this finds the line.
            for _ in open_lines(path):
                pass
            raise CollectionError(f"{path}: {error}; save the file as UTF-8") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CollectionError(
                f"{path}: damaged gzip file after line {reader.line_num} ({error}); fetch or write "
                "it again"
            ) from error


def _records(reader: Any, label: str) -> Iterator[tuple[str, Row | CollectionError]]:
    header: list[str] = _record(reader, label, 1) or []
    if not header or len(set(header)) < len(header):
        raise CollectionError(f"{label}:1: wanted a header of different names, found {header!r}")
    first = reader.line_num + 1
    while (fields := _record(reader, label, first)) is not None:
        place, first = f"{label}:{first}", reader.line_num + 1
        if not fields:
            continue
        if len(fields) == len(header):
            yield place, dict(zip(header, fields, strict=True))
        else:
            yield (
                place,
                CollectionError(
                    f"{place}: {len(fields)} fields, and the header has {len(header)}; correct the "
                    "line"
                ),
            )


def _record(reader: Any, label: str, line: int) -> list[str] | None:
    """The next fields, which begin in that line; None at the end."""
    try:
        found: list[str] | None = next(reader, None)
    except csv.Error as error:
        # Of a quote that nobody closes the reader knows only where the file ends.
        raise CollectionError(
            f"{label}:{line}: the row that begins here is not readable: {error}; correct its quotes"
        ) from error
    return found
