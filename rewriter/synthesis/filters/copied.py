"""Wording that is copied from the document: such queries are found by any keyword search."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from retrievers.analysis import ENGLISH_STOP_WORDS
from retrievers.leaks import words
from rewriter.synthesis.filters.base import Context, Draft

RUN = 3  # words

Runs = set[tuple[str, ...]]


class CopiedSettings(BaseModel):
    """How much may be copied.

    Attributes:
        most: share of a query's runs of three words that stand in its document too.
        strict: no three content words in a row may be shared with the document; words in
            `stop_words` are passed over on both sides.
        stop_words: words without content; the default is a short English list.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    most: float = Field(default=0.3, ge=0, le=1)
    strict: bool = False
    stop_words: tuple[str, ...] = tuple(sorted(ENGLISH_STOP_WORDS))


class CopiedFilter:
    """Drops by the share of runs that the document holds too."""

    def __init__(self, settings: CopiedSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._stop = frozenset(settings.stop_words)

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        return [self._judge(draft) for draft in drafts]

    def _judge(self, draft: Draft) -> str | None:
        asked, held = words(draft.text), words(self._context.text_of(draft))
        if copied_share(asked, held) > self._settings.most:
            return "copied wording"
        if self._settings.strict and runs(self._content(asked)) & runs(self._content(held)):
            return "three content words in a row"
        return None

    def _content(self, found: Sequence[str]) -> list[str]:
        return [word for word in found if word not in self._stop]


def runs(found: Sequence[str]) -> Runs:
    """All runs of three words; none where there are fewer."""
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}


def copied_share(asked: Sequence[str], held: Sequence[str]) -> float:
    """Share of the runs of one text, each counted once, that another holds; 0 without runs."""
    own = runs(asked)
    return len(own & runs(held)) / len(own) if own else 0.0
