"""Queries that name their document: whoever knows its name needs no rewriter."""

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field

from retrievers.leaks import words
from rewriter.synthesis.filters.base import Context, Draft

_PARTS = re.compile(r"[./\\]")


class NamesSettings(BaseModel):
    """What counts as a document's name.

    Attributes:
        last_part: also the last part of a name in parts, such as `deque` of `collections.deque` or
            `report` of `2024/report.pdf`.
        least_chars: shorter names, and mere numbers, are words like any other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    last_part: bool = True
    least_chars: int = Field(default=4, ge=1)


class NamesFilter:
    """Drops queries that hold the title or the id of their document, word for word."""

    def __init__(self, settings: NamesSettings, context: Context) -> None:
        self._settings = settings
        self._collection = context.collection

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        return [self._judge(draft) for draft in drafts]

    def _judge(self, draft: Draft) -> str | None:
        asked = _joined(draft.text)
        named = any(_joined(name) in asked for name in self._names(draft.document))
        return "names the document" if named else None

    def _names(self, identity: str) -> Iterator[str]:
        for whole in (identity, self._collection.document(identity).title):
            for name in (whole, *([_last(whole)] if self._settings.last_part else [])):
                found = "".join(words(name))
                if len(found) >= self._settings.least_chars and not found.isdecimal():
                    yield name


def _joined(text: str) -> str:
    """The words apart by spaces, with one at either end, so that only whole words are found."""
    return f" {' '.join(words(text))} "


def _last(name: str) -> str:
    """The last part of a name that has no spaces; a file's ending is no part."""
    if " " in name.strip():
        return ""
    *_, file = re.split(r"[/\\]", name)
    stem = re.sub(r"\.(?:pdf|md|html?|txt|jsonl?|csv|parquet|png|jpe?g)$", "", file, flags=re.I)
    return _PARTS.split(stem)[-1]
