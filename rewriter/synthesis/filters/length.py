"""Too short, or too long."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewriter.synthesis.filters.base import Context, Draft


class LengthSettings(BaseModel):
    """Characters a query has at least and at most."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    least: int = Field(default=15, ge=1)
    most: int = Field(default=600, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> "LengthSettings":
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, most {self.most}: no query has such a length")
        return self


class LengthFilter:
    """Drops by length."""

    def __init__(self, settings: LengthSettings, context: Context) -> None:
        self._settings = settings

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        return [self._judge(len(draft.text)) for draft in drafts]

    def _judge(self, length: int) -> str | None:
        if length < self._settings.least:
            return "too short"
        return "too long" if length > self._settings.most else None
