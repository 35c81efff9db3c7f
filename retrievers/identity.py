"""Names and ids: the errors they raise, Unicode form NFC, uniqueness, safe file names."""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from unicodedata import is_normalized, normalize

Where: TypeAlias = Callable[[int], str]  # row number, the first is 0 → "corpus.jsonl:7"

_SAFE = re.compile(r"[A-Za-z0-9_-]+")


class CollectionError(ValueError):
    """A collection that cannot be used as it is; the message says where and what to change."""


class UnknownNameError(CollectionError):
    """An id, split, kind, loader or option that does not exist; the message lists what does."""


class DuplicateIdError(CollectionError):
    """Two rows with the same id, compared in Unicode form NFC; the message holds both places."""


class EmptyCollectionError(CollectionError):
    """A file or a collection that holds nothing."""


class MissingFileError(CollectionError, FileNotFoundError):
    """A file or folder that is needed and not there."""


def nfc(identity: str) -> str:
    """Unicode form NFC, so that an id typed in either form finds its document."""
    return identity if is_normalized("NFC", identity) else normalize("NFC", identity)


def row_number(row: int) -> str:
    """The place of a row that came from no file."""
    return f"row {row}"


def index_ids(ids: Iterable[Any], what: str, where: Where = row_number) -> dict[str, int]:
    """Map every id, in form NFC, to its row.

    what: the kind of id, for the message ("document", "query"). where: names a row's place.

    Raises:
        DuplicateIdError: two ids are equal, or become equal in form NFC.
        CollectionError: an id is no text or empty.
    """
    listed = list(ids)
    positions: dict[str, int] = {}
    if _are_plain(listed):
        positions = dict(zip(listed, range(len(listed)), strict=True))
        if len(positions) == len(listed):
            return positions
        positions = {}  # an id is there twice: find out where
    for row, identity in enumerate(listed):
        if not isinstance(identity, str) or not identity:
            raise CollectionError(
                f"{where(row)}: {what} id {identity!r}: ids are text and not empty; name this row"
            )
        first = positions.setdefault(nfc(identity), row)
        if first != row:
            raise DuplicateIdError(
                f"{what} id {identity!r} is at {where(first)} and again at {where(row)} (compared "
                f"in Unicode form NFC); ids are unique: rename or remove one of the two"
            )
    return positions


def _are_plain(ids: list[Any]) -> bool:
    """Whether all are ASCII texts, hence in form NFC, and none is empty: told in no time."""
    return set(map(type, ids)) == {str} and all(ids) and all(map(str.isascii, ids))


def check_safe(name: str, what: str) -> None:
    """Refuse a split or kind that could not be part of a file's name."""
    if not _SAFE.fullmatch(name):
        raise CollectionError(
            f"{what} {name!r}: use ASCII letters, digits, '_' and '-' only, as in 'test' or "
            f"'graded': it becomes part of a file's name"
        )
