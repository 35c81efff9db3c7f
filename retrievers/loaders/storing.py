"""Documents → an Arrow table: small ones in memory, others in a file that is mapped into memory.

The file is made once for the same source files (path, size, time of change) and options, in the
folder `documents` of the cache; every process of a training maps the same one. A file that is no
longer wanted can be removed at any time.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from retrievers.atomic import write_once
from retrievers.identity import CollectionError, Where
from retrievers.index import fingerprint
from retrievers.models import cache_dir

FORMAT = 1  # of the file: a change makes the old ones useless
SMALL = 64 * 2**20  # bytes of source files that are read into memory
BATCH_ROWS, BATCH_BYTES = 8192, 32 * 2**20
TABLE, ABOUT = "documents.arrow", "about.json"

TEXTS = [(name, pa.string()) for name in ("id", "title", "text", "metadata", "place")]
# What retrievers.pages reads: a file's bytes, or its path; of a PDF one page, or all.
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string()), ("page", pa.int32())])

Rows: TypeAlias = Callable[[Counter[str]], Iterator[Mapping[str, Any]]]


def store(
    sources: Sequence[Path], options: Mapping[str, Any], rows: Rows, images: bool = False
) -> tuple[pa.Table, dict[str, int]]:
    """Documents of some files.

    Args:
        sources: files that are read.
        options: whatever else decides what comes out, as JSON values.
        rows: yields the documents in order (`id`, `title`, `text`, `metadata` as JSON, `place`, and
            `image`); counts in its argument what it leaves out: reason → count.
        images: whether the documents have a column `image`.

    Returns:
        The table, and what was left out.

    Raises:
        Whatever `rows` raises; nothing is kept then.
    """
    schema = pa.schema([*TEXTS, *([("image", IMAGE)] if images else [])])
    facts = [(str(path.resolve()), path.stat()) for path in sources]
    if sum(stat.st_size for _, stat in facts) <= SMALL:
        left_out: Counter[str] = Counter()
        batches = list(_batches(rows(left_out), schema))
        return pa.Table.from_batches(batches, schema=schema), dict(left_out)
    read = [[path, stat.st_size, stat.st_mtime_ns] for path, stat in facts]
    key = fingerprint({"format": FORMAT, "files": read, "options": dict(options), "images": images})
    folder = cache_dir() / "documents" / key
    write_once(folder, lambda unfinished: _write(unfinished, rows, schema))
    return _mapped(folder)


def places(table: pa.Table) -> Where:
    """Where a row of such a table came from."""
    return lambda row: str(table.column("place")[row].as_py())


def _write(folder: Path, rows: Rows, schema: pa.Schema) -> None:
    left_out: Counter[str] = Counter()
    with (
        pa.OSFile(str(folder / TABLE), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for batch in _batches(rows(left_out), schema):
            writer.write_batch(batch)
    about = json.dumps({"left_out": left_out}, ensure_ascii=False)
    (folder / ABOUT).write_text(about, encoding="utf-8")


def _mapped(folder: Path) -> tuple[pa.Table, dict[str, int]]:
    try:
        table = pa.ipc.open_file(pa.memory_map(str(folder / TABLE))).read_all()
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise CollectionError(f"{folder} is damaged: {error}; remove it") from error
    return table, about["left_out"]


def _batches(rows: Iterator[Mapping[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    batch: list[Mapping[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += _size(row)
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(batch, schema=schema)
            batch, size = [], 0
    if batch:
        yield pa.RecordBatch.from_pylist(batch, schema=schema)


def _size(row: Mapping[str, Any]) -> int:
    image = row.get("image") or {}
    texts = sum(len(value) for value in row.values() if isinstance(value, str))
    return texts + len(image.get("bytes") or b"")
