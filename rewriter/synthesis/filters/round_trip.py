"""Round trip: whether the query as it is finds the document it was written from."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, model_validator

from retrievers.base import Hit
from rewriter.synthesis.filters.base import FAILED, Backend, Context, Draft


class RoundTripSettings(BaseModel):
    """Where the source document has to be.

    Attributes:
        backend: that is searched; its settings are in the configuration's `retrievers`.
        within: it has to be among the first so many hits, or the query is dropped: a question that
            leads nowhere near its document is often not about it. None: anywhere.
        not_within: it must not be among the first so many, to keep the hard ones. None: it may.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Backend = "lexical"
    within: int | None = Field(default=100, ge=1)
    not_within: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _possible(self) -> "RoundTripSettings":
        if self.within is None and self.not_within is None:
            raise ValueError("within and not_within are both null; give one, or leave the filter")
        if self.within is not None and (self.not_within or 0) >= self.within:
            raise ValueError(
                f"not_within is {self.not_within}, within {self.within}: no rank is allowed"
            )
        return self


class RoundTripFilter:
    """Drops by the rank of the source document."""

    def __init__(self, settings: RoundTripSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        depth = max(self._settings.within or 0, self._settings.not_within or 0)
        texts = [draft.text for draft in drafts]
        found = self._context.find(self._settings.backend, texts, depth)
        return [self._judge(found[draft.text], draft.document) for draft in drafts]

    def _judge(self, hits: list[Hit] | None, document: str) -> str | None:
        if hits is None:
            return FAILED
        ids = [hit.id for hit in hits]
        rank = ids.index(document) + 1 if document in ids else None
        if self._settings.not_within and rank and rank <= self._settings.not_within:
            return f"found within {self._settings.not_within}"
        if self._settings.within and (rank is None or rank > self._settings.within):
            return f"not found within {self._settings.within}"
        return None
