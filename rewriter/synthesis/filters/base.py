"""What filters see, and what they answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias

from pydantic import AfterValidator

from retrievers import RETRIEVERS
from retrievers.base import Hit, Retriever
from retrievers.collection import Collection
from rewards.search.patience import Patience, PatientSearch

if TYPE_CHECKING:
    from rewriter.config import Config


def _known(backend: str) -> str:
    if backend not in RETRIEVERS:
        raise ValueError(f"no backend {backend!r}; there are: {', '.join(sorted(RETRIEVERS))}")
    return backend


# Checked with the settings: filters run when all answers are there, and may have been paid for.
Backend: TypeAlias = Annotated[str, AfterValidator(_known)]

FAILED = "the search failed"  # counted apart: nothing is known about such a query


@dataclass(frozen=True)
class Draft:
    """A query that was written.

    Attributes:
        id: its own, the same in every run that writes the same.
        text: what is searched with.
        scenario, question: its parts; both empty where it was not written in parts.
        document: id of the one it was written from.
        page: number of the page that was read; None where the text was.
        number: of the query among those of its document.
        seed: given to the generator.
    """

    id: str
    text: str
    document: str
    scenario: str = ""
    question: str = ""
    page: int | None = None
    number: int = 0
    seed: int = 0


class Filter(Protocol):
    """Made from its settings and the context."""

    def __call__(self, drafts: Sequence[Draft]) -> list[str | None]:
        """(D,) for each query why it is dropped; None keeps it."""


@dataclass
class Context:
    """What filters may ask for; backends are opened once.

    Attributes:
        config: of the run.
        collection: the documents.
        cache: folder for what is costly to make again.
    """

    config: "Config"
    collection: Collection
    cache: Path
    _opened: dict[str, Retriever] = field(default_factory=dict)

    def retriever(self, backend: str) -> Retriever:
        """A backend over the documents, by the configuration's `retrievers`."""
        if backend not in self._opened:
            from rewriter.config.backends import open_retrievers

            self._opened |= open_retrievers(self.config, self.collection, [backend])
        return self._opened[backend]

    def find(self, backend: str, texts: Sequence[str], depth: int) -> dict[str, list[Hit] | None]:
        """Text → its first hits; None where the search failed for good.

        Raises:
            PermanentSearchError: trying again cannot help, or too many failed in a row.
        """
        reward = self.config.reward
        patience = Patience(reward.retries, reward.backoff_s, reward.max_failures)
        return PatientSearch(backend, self.retriever(backend), depth, patience).find(texts)

    def text_of(self, draft: Draft) -> str:
        """Title and text of the document that a query was written from."""
        document = self.collection.document(draft.document)
        return f"{document.title}\n{document.text}"
