"""One backend of a panel: search with patience, then score."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from retrievers.base import Hit, PermanentSearchError, Retriever
from rewards.metrics import Grades, Measure, Ranking, ndcg
from rewards.search.rows import Row
from rewards.settings import RewardSettings

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


class Backend:
    """A retriever, how its results are rewarded, and how often it failed in a row.

    Args:
        name: as in the settings.
        retriever: what is searched.
        settings: of the whole reward.

    Attributes:
        reward: this backend's own settings.
        label: name of its reward function.
    """

    def __init__(self, name: str, retriever: Retriever, settings: RewardSettings) -> None:
        self.name = name
        self.retriever = retriever
        self.reward = settings.backends[name]
        self.label = settings.label(name)
        self._depth = settings.depth(name)
        self._delays = [settings.backoff_s * 2**n for n in range(settings.retries)]
        self._most = settings.max_failures
        self._in_a_row = 0
        self._cause: Exception | None = None
        kind = self.reward.kind
        self._measure = (
            partial(best_rank, k=self._depth) if kind == "rank" else Measure(kind, self._depth)
        )

    def wanted(self, row: Row, text: str | None) -> list[str]:
        """Texts that have to be searched to reward one row; `text` is None if it has no rewrite."""
        raw = [row.query] if self.reward.gain else []
        return raw if text is None else [text, *raw]

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
            self._cause = error
            logger.warning("%s: search failed for good: %r", self.name, error)
        return self._one_by_one(distinct) if len(distinct) > 1 else {distinct[0]: None}

    def settle(self, rows_failed: Iterable[bool]) -> None:
        """Count failing rows in a row, over all steps.

        Args:
            rows_failed: for every row that needed a search, in order, whether it failed.

        Raises:
            TooManyFailures: more in a row than `max_failures` allows.
        """
        for failed in rows_failed:
            self._in_a_row = self._in_a_row + 1 if failed else 0
            self._give_up(self._in_a_row)

    def score(self, row: Row, text: str | None, found: Mapping[str, list[Hit] | None]) -> float:
        """What a row earns: the score of its rewrite, 0 without one, less the raw query's (gain).

        Without the subtraction for unparsed completions too, breaking the format would earn more
        than a rewrite that is worse than the raw query.
        """
        earned = 0.0 if text is None else self._value(row, text, found)
        return earned - self._value(row, row.query, found) if self.reward.gain else earned

    def hit(self, row: Row, text: str | None, found: Mapping[str, list[Hit] | None]) -> bool:
        """Whether the rewrite brought back a relevant document."""
        return text is not None and self._value(row, text, found) > 0

    def _value(self, row: Row, text: str, found: Mapping[str, list[Hit] | None]) -> float:
        return self._measure([hit.id for hit in found[text] or ()], row.grades)

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
                found[text], self._cause = None, error
                failures += 1
                self._give_up(failures)  # an engine that is down is not asked hundreds of times
        return found

    def _give_up(self, failures: int) -> None:
        if failures >= self._most:
            raise TooManyFailures(
                f"backend {self.name}: {failures} searches in a row failed, the last with "
                f"{self._cause!r}; see that it is running, or raise reward.max_failures "
                f"(now {self._most})"
            ) from self._cause


def best_rank(ranking: Ranking, grades: Grades, k: int) -> float:
    """1 / log2(rank + 1) of the best-ranked relevant document within the first k, else 0."""
    # NDCG with that document as the only relevant one: the same discount from the same scorer.
    return max(ndcg(ranking, {doc: 1.0}, k) for doc, grade in grades.items() if grade > 0)
