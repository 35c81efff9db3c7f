"""The wrong language, as far as its script tells: Korean from English, not French from English."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rewards.texts import NO_SCRIPT, main_script, scripts
from rewriter.synthesis.filters.base import Context, Draft

# Names of `main_script` → those of `scripts`, where they are not the same.
_LETTERS = {"han": "CJK", "japanese": "CJK"}


class ScriptSettings(BaseModel):
    """Which scripts a query is written in.

    Attributes:
        allowed: names such as "latin", "hangul", "han", "japanese", "cyrillic"; or "document" for
            that of most letters of its document.
        least: share of a query's letters that are in them. Below 1, since names and terms of
            another script are part of many languages.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed: tuple[str, ...] | Literal["document"] = "document"
    least: float = Field(default=0.6, gt=0, le=1)

    @field_validator("allowed")
    @classmethod
    def _known(cls, allowed: tuple[str, ...] | str) -> tuple[str, ...] | str:
        """A language in place of a script, such as "korean", would drop every query."""
        names = () if isinstance(allowed, str) else allowed
        unknown = [name for name in names if _LETTERS.get(name, name.upper()) not in _all()]
        if unknown or not allowed:
            said = f"{unknown[0]!r} is no script" if unknown else "no script is named"
            raise ValueError(
                f'{said}; give some such as latin, hangul, han, japanese, cyrillic, or "document"'
            )
        return allowed


class ScriptFilter:
    """Drops by the script of the letters."""

    def __init__(self, settings: ScriptSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        return [self._judge(draft) for draft in drafts]

    def _judge(self, draft: Draft) -> str | None:
        names = self._allowed(draft)
        used = scripts(draft.text)
        allowed = {_LETTERS.get(name, name.upper()) for name in names}
        if names == {NO_SCRIPT} or not used:  # a document without a text says nothing
            return None if used else "no letters"
        share = sum(script in allowed for script in used) / len(used)
        return "another script" if share < self._settings.least else None

    def _allowed(self, draft: Draft) -> set[str]:
        if self._settings.allowed == "document":
            return {main_script(self._context.text_of(draft))}
        return set(self._settings.allowed)


@cache
def _all() -> frozenset[str]:
    """What `scripts` may find."""
    letters = (char for char in map(chr, range(0x10000)) if char.isalpha())
    return frozenset(unicodedata.name(char, "?").split()[0] for char in letters)
