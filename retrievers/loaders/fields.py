"""Fields of rows whose names and types differ from one data set to the next."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, time
from typing import Any

from retrievers.identity import CollectionError, MissingFileError
from retrievers.loaders.lines import check_id, text_field

IDS = ("_id", "id", "docid", "doc_id", "document_id", "corpus-id", "corpus_id", "pid")
TITLES = ("title",)
TEXTS = ("text", "contents", "content", "body", "segment", "passage", "markdown")
QUERY_IDS = ("_id", "id", "query-id", "query_id", "qid", "topic_id", "number")
QUERY_TEXTS = ("text", "query", "title", "question")


def named(row: dict[str, Any], names: Sequence[str], what: str, where: str) -> str:
    """The first of the names that the row has.

    Raises:
        CollectionError: it has none; says what it has.
    """
    for name in names:
        if name in row:
            return name
    raise CollectionError(
        f"{where}: no {what}: none of {', '.join(names)} (there are: {', '.join(row) or 'none'})"
    )


def same(row: dict[str, Any], name: str, where: str) -> str:
    """The row's name for a column, hyphens and underscores being the same: "corpus_id".

    Raises:
        CollectionError: the column is missing, or there in both spellings.
    """
    wanted = name.replace("-", "_")
    found = [key for key in row if key.replace("-", "_") == wanted]
    if len(found) != 1:
        said = f"columns {found} are one and the same" if found else f"no column {name!r}"
        raise CollectionError(f"{where}: {said} (there are: {', '.join(row)})")
    return found[0]


def identity(value: Any, where: str) -> str:
    """An id as text; whole numbers are written out.

    Raises:
        CollectionError: it is neither, or empty, or holds a control character.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise CollectionError(f"{where}: id {value!r:.80}, wanted text or a whole number")
    check_id(value, where)
    return value


def joined_fields(row: dict[str, Any], names: Iterable[str], where: str) -> str:
    """The texts under these names, a line each; nulls are left out. Errors as `text_field`."""
    texts = (text_field(row, name, where) for name in names if row.get(name, "") is not None)
    return "\n".join(text for text in texts if text.strip())


def as_json(values: dict[str, Any]) -> str | None:
    """JSON of what further columns hold, nulls and bytes left out; None where nothing is left."""
    kept = {k: v for k, v in values.items() if v is not None and not isinstance(v, bytes)}
    return json.dumps(kept, ensure_ascii=False, default=_plain) if kept else None


def image_bytes(cell: Any, where: str) -> bytes:
    """The file in an image cell as the datasets library writes it: `bytes` and `path`.

    Raises:
        MissingFileError: only a path, which means something on another machine.
        CollectionError: no image.
    """
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes):
        return bytes(cell["bytes"])
    if isinstance(cell, dict) and cell.get("path"):
        raise MissingFileError(
            f"{where}: the image is a path without bytes ({cell['path']!r:.80}); fetch the data "
            "set's Parquet files, which embed them"
        )
    raise CollectionError(f"{where}: no image: {cell!r:.80}")


def _plain(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)
