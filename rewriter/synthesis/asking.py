"""Asking the generator for what the journal lacks."""

import base64
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from retrievers.collection import Collection
from retrievers.index import fingerprint
from rewriter.synthesis.generators import (
    GENERATORS,
    GenerationError,
    Generator,
    Reply,
    Request,
    build_generator,
)
from rewriter.synthesis.generators.base import shortened
from rewriter.synthesis.generators.headings import headings
from rewriter.synthesis.journal import Journal
from rewriter.synthesis.prompts import Message
from rewriter.synthesis.readings import Reading
from rewriter.synthesis.settings import SynthesisSettings

logger = logging.getLogger(__name__)

EVERY_S = 30  # seconds between two lines of progress
# Calls that are refused at the start, before the service or the model is taken to be the wrong one:
# a single document may be too long, or not to the service's liking.
LOST = 2


@dataclass(frozen=True)
class Ask:
    """One answer that is wanted, without what is read for it."""

    key: str
    document: str
    page: int | None
    number: int
    seed: int
    blank: bool = False  # nothing to read: the generator is not asked


def prompt_hash(settings: SynthesisSettings) -> str:
    """Hash of all that an answer depends on but the document and the seed."""
    asked = {
        "generator": settings.generator.options.identity(),
        "kind": settings.generator.kind,
        "prompt": settings.prompt.model_dump(mode="json"),
        "reads": settings.reads,
        "document_chars": settings.document_chars,
    }
    return fingerprint(asked)


class Asking:
    """Puts readings to the generator; it is loaded only if something is missing.

    Args:
        settings: who is asked what.
        collection: for the headings that documents declare.
        journal: where answers are kept.

    Attributes:
        asks: everything that was wanted, in order.
        calls: answers that were generated now. failed: calls that failed.
    """

    def __init__(
        self, settings: SynthesisSettings, collection: Collection, journal: Journal
    ) -> None:
        self._settings = settings
        self._collection = collection
        self._journal = journal
        self._prompt = prompt_hash(settings)
        self._in_a_row = 0
        self._shown = time.monotonic()
        self.asks: list[Ask] = []
        self.calls = self.failed = 0

    def ask(self, readings: Iterable[Reading]) -> None:
        """Have all readings answered.

        Raises:
            GenerationError: too many calls failed in a row, or the first ones for good.
        """
        facts: dict[str, dict[str, Any]] = {}
        missing = self._missing(readings, facts)
        first = next(missing, None)
        if first is None:
            return
        generator = build_generator(self._settings.generator.kind, self._settings.generator.options)
        requests = (self._request(generator, *one) for one in chain([first], missing))
        for replies in generator.write(requests):
            self._journal.add(replies, facts)
            for reply in replies:
                facts.pop(reply.key, None)
                self._count(reply)
            self._show()

    def _missing(
        self, readings: Iterable[Reading], facts: dict[str, dict[str, Any]]
    ) -> Iterator[tuple[Ask, Reading]]:
        for reading in readings:
            ask = self._ask_for(reading)
            self.asks.append(ask)
            if not ask.blank and self._journal.get(ask.key) is None:
                facts[ask.key] = {
                    "document": ask.document,
                    "page": ask.page,
                    "number": ask.number,
                    "seed": ask.seed,
                    "prompt": self._prompt,
                }
                yield ask, reading

    def _ask_for(self, reading: Reading) -> Ask:
        seed = self._settings.seed + reading.number
        named = {
            "prompt": self._prompt,
            "document": reading.document.id,
            "digest": reading.digest,
            "page": reading.page,
            "number": reading.number,
            "seed": seed,
        }
        blank = self._settings.reads == "pages" and reading.image is None
        key = fingerprint(named)
        return Ask(key, reading.document.id, reading.page, reading.number, seed, blank)

    def _request(self, generator: Generator, ask: Ask, reading: Reading) -> Request:
        title, text = reading.document.title, reading.document.text
        found = (
            headings(title, text, self._collection.metadata(ask.document))
            if not generator.tagged
            else ()
        )
        return Request(ask.key, self._messages(generator, reading), found, ask.number, ask.seed)

    def _messages(self, generator: Generator, reading: Reading) -> list[Message]:
        prompt, document = self._settings.prompt, reading.document
        if reading.image is not None:
            data = base64.b64encode(reading.image).decode()
            return prompt.page_messages(document.title, f"data:image/png;base64,{data}")
        text = shortened(document.text, self._settings.document_chars)
        return generator.conversation(lambda part: prompt.messages(document.title, part), text)

    def _count(self, reply: Reply) -> None:
        """Stop where going on would only fail."""
        if reply.text is not None:
            self.calls += 1
            self._in_a_row = 0
            return
        self.failed += 1
        self._in_a_row += 1
        logger.warning("a call failed: %s", reply.failure)
        if reply.permanent and self.calls == 0 and self._in_a_row >= LOST:
            raise GenerationError(
                f"the first {self._in_a_row} calls failed, and would again: {reply.failure}"
            )
        if self._in_a_row >= self._settings.max_failures:
            raise GenerationError(
                f"{self._in_a_row} calls in a row failed, the last one: {reply.failure}; what was "
                "answered is kept: give the same command again to go on"
            )

    def _show(self) -> None:
        if time.monotonic() - self._shown > EVERY_S:
            self._shown = time.monotonic()
            logger.info("%d answers, %d failed calls", self.calls, self.failed)


def is_tagged(settings: SynthesisSettings) -> bool:
    """Whether the answers are in the prompt's parts."""
    return _class(settings).tagged


def note_of(settings: SynthesisSettings) -> str:
    """What is to be known about the generator's queries."""
    return _class(settings).note


def _class(settings: SynthesisSettings) -> type[Generator]:
    from importlib import import_module

    module, name, _ = GENERATORS[settings.generator.kind]
    found: type[Generator] = getattr(import_module(module), name)
    return found
