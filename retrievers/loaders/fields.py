"""Fields of rows whose names and types differ from one data set to the next."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date, time
from typing import Any

from retrievers.identity import CollectionError, MissingFileError

IDS = ("_id", "id", "docid", "doc_id", "document_id", "corpus-id", "corpus_id", "pid")
TITLES = ("title",)
TEXTS = ("text", "contents", "content", "body", "segment", "passage", "markdown")
QUERY_IDS = ("_id", "id", "query-id", "query_id", "qid", "topic_id", "number")
QUERY_TEXTS = ("text", "query", "title", "question")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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


def check_id(identity: str, where: str) -> None:
    """Raise CollectionError for an id that a line of judgements cannot hold."""
    if _CONTROL.search(identity):
        raise CollectionError(
            f"{where}: id {identity!r} holds a tab, line break or other control character, so that "
            "a TSV file of judgements cannot refer to it; rename it"
        )


def id_field(row: dict[str, Any], key: str, where: str) -> str:
    """Return the id under `key`. Errors as `text_field` and `check_id`."""
    identity = text_field(row, key, where)
    check_id(identity, where)
    return identity


def text_field(row: dict[str, Any], key: str, where: str) -> str:
    """Return the text under `key`. where: "file:line". Raises CollectionError if there is none."""
    if key not in row:
        raise CollectionError(
            f"{where}: no {key!r}; add it (the line has: {', '.join(row) or 'nothing'})"
        )
    value = row[key]
    if not isinstance(value, str):
        raise CollectionError(
            f"{where}: {key!r} is {value!r:.80}, wanted text; put it in quotes, or write an empty "
            f"text where there is none"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        # json reads "\ud800" alone without complaint, but no file or index can hold it.
        raise CollectionError(
            f"{where}: {key!r} holds half a surrogate pair ({error}); remove or repair the escape"
        ) from error
    return value


def optional_field(row: dict[str, Any], key: str, where: str) -> str | None:
    """Return the text under `key`, None where it is missing or null. Errors as `text_field`."""
    return None if row.get(key) is None else text_field(row, key, where)


def joined_fields(row: dict[str, Any], names: Iterable[str], where: str) -> str:
    """The texts under these names, a line each; nulls are left out. Errors as `text_field`."""
    texts = (text_field(row, name, where) for name in names if row.get(name, "") is not None)
    return "\n".join(text for text in texts if text.strip())


def metadata_field(row: dict[str, Any], where: str) -> dict[str, Any]:
    """What stands under `metadata`, a copy; nothing where it is missing or null.

    Raises:
        CollectionError: it is no object.
    """
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise CollectionError(
            f"{where}: 'metadata' is {metadata!r:.80}, wanted an object; put it in braces"
        )
    return dict(metadata)


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
