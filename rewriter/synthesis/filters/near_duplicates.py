"""Queries that say what another one says already.

The similarity is the exact Jaccard similarity that MinHash would estimate, and no pair is missed:
see `retrievers.leaks.near_duplicates`.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from retrievers.collection import Collection, Document
from retrievers.leaks import near_duplicates
from rewriter.synthesis.filters.base import Context, Draft


class NearDuplicatesSettings(BaseModel):
    """threshold: similarity (Jaccard, runs of three words) from which the later one is dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold: float = Field(default=0.7, gt=0, le=1)


class NearDuplicatesFilter:
    """Keeps the first of queries that are alike."""

    def __init__(self, settings: NearDuplicatesSettings, context: Context) -> None:
        self._threshold = settings.threshold

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """See `Filter`."""
        if not drafts:
            return []
        rows = [Document(str(row), "", draft.text) for row, draft in enumerate(drafts)]
        texts = Collection.from_documents("queries", rows)
        dropped: set[int] = set()
        # Pairs come in the order of their first query, which is settled by then.
        for one, other, _ in near_duplicates(texts, texts.ids, self._threshold):
            if int(one) not in dropped:
                dropped.add(int(other))
        return ["near-duplicate" if row in dropped else None for row in range(len(drafts))]
