"""What all generators share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rewriter.synthesis.prompts import Message

Build = Callable[[str], list[Message]]  # text of a document → the conversation about it


class GenerationError(ValueError):
    """Nothing more can be generated; the message says why and what to do."""


@dataclass(frozen=True)
class Request:
    """One answer that is wanted.

    Attributes:
        key: names it in the journal.
        messages: the conversation, in the form of OpenAI's chat completions.
        headings: of the document's sections, for generators that read nothing else.
        number: of this request among those about the same document, the first is 0.
        seed: for the draw.
    """

    key: str
    messages: list[Message] = field(repr=False)
    headings: Sequence[str] = ()
    number: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        key: of the request.
        text: as it was written; None where the call failed.
        cut: whether the limit of tokens cut it off.
        prompt_tokens, completion_tokens: None where nobody counted.
        failure: why there is no text.
        permanent: whether the same call would fail again.
    """

    key: str
    text: str | None
    cut: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    failure: str = ""
    permanent: bool = False


class Identified(Protocol):
    """The settings of a generator."""

    def identity(self) -> dict[str, Any]:
        """JSON values that decide what is written."""


class Generator(ABC):
    """Answers requests; made from its settings.

    Attributes:
        reads_pages: whether it takes page images.
        tagged: whether it answers in the prompt's tagged parts; else its text is the query.
        note: what readers of the data card should know about its queries.
    """

    reads_pages = False
    tagged = True
    note = ""

    @abstractmethod
    def write(self, requests: Iterable[Request]) -> Iterator[list[Reply]]:
        """Answer all requests; replies come in any order, as soon as they are there.

        Raises:
            GenerationError: none can be answered.
        """

    def conversation(self, build: Build, text: str) -> list[Message]:
        """The conversation about a text, the text shortened to what this generator can hold."""
        return build(text)


def shortened(text: str, limit: int) -> str:
    """The first `limit` characters at most, cut where a word ends, with … for the rest."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    # Text without spaces is cut anywhere.
    end = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:end] if end > limit // 2 else kept).rstrip() + "…"
