"""Search with patience: bounded retries, then text by text, then None for what failed for good."""

import logging
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from retrievers.base import Hit, PermanentSearchError, Retriever

logger = logging.getLogger(__name__)

# Trying these again cannot help: a wrong configuration, or a slip in somebody's code.
FATAL = (
    PermanentSearchError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NameError,
    ImportError,
    AssertionError,
    NotImplementedError,
)


class TooManyFailures(PermanentSearchError):
    """A backend kept failing; `__cause__` is the last error."""


class Patience(NamedTuple):
    """How much failing is borne.

    retries: further tries of a failing search. backoff_s: seconds before the first of them, doubled
    each time. max_failures: texts in a row that may fail before `TooManyFailures`.
    """

    retries: int = 0
    backoff_s: float = 0.5
    max_failures: int = 1


class PatientSearch:
    """A retriever that is asked again.

    Args:
        name: of the backend, for messages.
        retriever: what is searched.
        depth: hits a text.
        patience: how often it is asked again.

    Attributes:
        cause: the last error.
    """

    def __init__(self, name: str, retriever: Retriever, depth: int, patience: Patience) -> None:
        self.name = name
        self.retriever = retriever
        self.cause: Exception | None = None
        self._depth = depth
        self._delays = [patience.backoff_s * 2**n for n in range(patience.retries)]
        self._most = patience.max_failures

    def find(self, texts: Iterable[str]) -> dict[str, list[Hit] | None]:
        """Search all distinct texts at once; after bounded retries, one by one.

        Returns:
            text -> its hits, None where the search failed for good.

        Raises:
            PermanentSearchError: trying again cannot help.
            TooManyFailures: `max_failures` texts in a row failed.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        try:
            return dict(zip(distinct, self._patiently(distinct), strict=True))
        except FATAL:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a user's engine raises: counted, never a reward
            self.cause = error
            logger.warning("%s: search failed for good: %r", self.name, error)
        return self._one_by_one(distinct) if len(distinct) > 1 else {distinct[0]: None}

    def give_up(self, failures: int) -> None:
        """Raise TooManyFailures if so many failures in a row are too many."""
        if failures >= self._most:
            raise TooManyFailures(
                f"backend {self.name}: {failures} searches in a row failed, the last with "
                f"{self.cause!r}; see that it is running, or raise reward.max_failures "
                f"(now {self._most})"
            ) from self.cause

    def _patiently(self, texts: Sequence[str]) -> list[list[Hit]]:
        for delay in self._delays:
            try:
                return self.retriever.search(texts, self._depth)
            except FATAL:
                raise
            except Exception as error:  # noqa: BLE001 - any engine, any failure
                logger.info("%s: search failed, again in %.1f s: %r", self.name, delay, error)
                time.sleep(delay)
        return self.retriever.search(texts, self._depth)

    def _one_by_one(self, texts: Iterable[str]) -> dict[str, list[Hit] | None]:
        found: dict[str, list[Hit] | None] = {}
        failures = 0
        for text in texts:
            try:
                found[text] = self.retriever.search([text], self._depth)[0]
                failures = 0
            except FATAL:
                raise
            except Exception as error:  # noqa: BLE001 - any engine, any failure
                found[text], self.cause = None, error
                failures += 1
                self.give_up(failures)  # an engine that is down is not asked hundreds of times
        return found
