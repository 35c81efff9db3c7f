"""What every way of finding shares: `search(queries, k)`, its checks, its cache, its tie rule.

A backend is a subclass of `Retriever` that sets `backend` and `fingerprint` and writes `_search`.
"""

import importlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from operator import index
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Hit(NamedTuple):
    """One document that was found: its id and the engine's score, higher is better."""

    id: str
    score: float


class CacheInfo(NamedTuple):
    """Requested queries answered without a search, queries searched, entries kept."""

    hits: int
    misses: int
    size: int


class SearchInputError(ValueError):
    """A k that no search can have."""


class MissingExtra(ImportError):
    """A package outside the plain install is needed; the message names the extra."""


class SearchError(Exception):
    """A search failed for a reason that may pass: worth retrying."""


class PermanentSearchError(SearchError):
    """A search failed and will fail again (bad configuration, a 4xx answer): do not retry."""


class Documents(Protocol):
    """What a backend reads of a collection; all three are in corpus order."""

    @property
    def ids(self) -> Sequence[str]:
        """Document ids, (N,)."""

    @property
    def fingerprint(self) -> str:
        """Hash of the documents in order: another order is another fingerprint."""

    def texts(self) -> Iterator[tuple[str, str]]:
        """(title, text) of every document."""


class Retriever(ABC):
    """Finds documents of one collection.

    Args:
        cache_size: answers to keep, least recently used go first; 0 keeps none.

    Attributes:
        backend: the name it is configured and reported under ("lexical", ...).
        keeps_index: whether it fills the folder it is given as `index_dir`.
        fingerprint: changes whenever the same text could bring back something else.
        size: number of documents, the most hits there can be; None where nobody knows.
    """

    backend: str
    keeps_index: bool = True
    fingerprint: str
    size: int | None = None

    def __init__(self, *, cache_size: int = 4096) -> None:
        self._cache: OrderedDict[tuple[str, int, str], tuple[Hit, ...]] = OrderedDict()
        self._cache_size = cache_size
        self._hits = self._misses = 0
        # Held while searching too: few engines and no model can be entered by two threads at once.
        self._lock = RLock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k hits of each query, best first.

        Equal queries are searched once, blank ones never: they have no hits.

        Args:
            queries: (Q,) search texts.
            k: hits wanted a query, at least 1; more than there are documents is allowed.

        Returns:
            Q lists in the order of `queries`, each the caller's own, of at most k hits.

        Raises:
            TypeError: `queries` is a single string, or one of them is not a string.
            SearchInputError: k is below 1.
            SearchError: the engine failed; see its subclass for what not to retry.
        """
        wanted = _checked_queries(queries)
        k = _checked_k(k)
        k = k if self.size is None else min(k, self.size)
        asked = [query for query in wanted if k and query.strip()]
        with self._lock:
            found = self._find(asked, k)
        return [list(found.get(query, ())) for query in wanted]

    def cache_info(self) -> CacheInfo:
        """Counts since construction.

        A hit is a requested query that cost no search, duplicates within one call included; blank
        queries are counted as neither.
        """
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._cache))

    @property
    def facts(self) -> dict[str, Any]:
        """What a reader of results must know about what was searched: JSON values by name."""
        return {} if self.size is None else {"size": self.size}

    @abstractmethod
    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        """Search distinct, non-blank queries; 1 <= k <= `size`. One list a query, best first."""

    def _find(self, asked: list[str], k: int) -> dict[str, tuple[Hit, ...]]:
        found: dict[str, tuple[Hit, ...]] = {}
        missing: list[str] = []
        for query in dict.fromkeys(asked):
            key = (self.fingerprint, k, query)
            if key in self._cache:
                self._cache.move_to_end(key)
                found[query] = self._cache[key]
            else:
                missing.append(query)
        if missing:
            for query, hits in zip(missing, self._answers(missing, k), strict=True):
                found[query] = hits
                self._keep((self.fingerprint, k, query), hits)
        self._hits += len(asked) - len(missing)
        self._misses += len(missing)
        return found

    def _answers(self, queries: list[str], k: int) -> list[tuple[Hit, ...]]:
        answers = self._search(list(queries), k)
        if len(answers) != len(queries):
            raise PermanentSearchError(
                f"{type(self).__name__}._search returned {len(answers)} lists for {len(queries)} "
                "queries; it must return one list a query, in their order"
            )
        return [tuple(hits[:k]) for hits in answers]

    def _keep(self, key: tuple[str, int, str], hits: tuple[Hit, ...]) -> None:
        self._cache[key] = hits
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def top_k(
    scores: NDArray[np.float64], k: int, eligible: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Positions of the k highest scores: score descending, then position ascending.

    Args:
        scores: (N,) one score a document, in corpus order.
        k: positions wanted, at least 1.
        eligible: (N,) False where a document is no hit whatever its score.

    Returns:
        At most k positions.

    Raises:
        ValueError: a score is not a number, so that there is no order.
    """
    positions = None if eligible is None else np.flatnonzero(eligible)
    values = scores if positions is None else scores[positions]
    if len(values) and np.isnan(values.max()):
        raise ValueError("a score is NaN, and NaN cannot be ranked; look for NaN in the model")
    if k < len(values):
        # A partition alone picks any of the equal scores at the border: take them all, then sort.
        kept = np.flatnonzero(values >= _reached_by(values, k))
        best = kept[np.argsort(-values[kept], kind="stable")[:k]]
    else:
        best = np.argsort(-values, kind="stable")
    return best if positions is None else positions[best]


def import_extra(module: str, extra: str) -> Any:
    """Import a package that is not in the plain install.

    Raises:
        MissingExtra: it is not installed; says `pip install "rlqr[EXTRA]"`.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise  # it is there, but something it needs is not: its own message says what
        raise _missing(module, extra) from error


def extra_version(package: str, extra: str) -> str:
    """Installed version of a package that is not in the plain install.

    Raises:
        MissingExtra: it is not installed; says `pip install "rlqr[EXTRA]"`.
    """
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise _missing(package, extra) from error


def _missing(package: str, extra: str) -> MissingExtra:
    text = f'the package {package} is needed here: pip install "rlqr[{extra}]"'
    return MissingExtra(text, name=package)


def _reached_by(values: NDArray[np.float64], k: int) -> np.float64:
    """A score that at least k values reach, and hardly more than k where few are equal.

    k columns that each hold a value this high are enough, and column maxima cost far less than a
    partition of all values.
    """
    columns = max(8 * k, 256)
    rows = len(values) // columns
    if rows > 1:
        values = values[: rows * columns].reshape(rows, columns).max(axis=0)
    return np.float64(np.partition(values, len(values) - k)[len(values) - k])


def _checked_queries(queries: Sequence[str]) -> list[str]:
    if isinstance(queries, str | bytes):
        raise TypeError(f"queries is one string, {queries!r}; give a sequence: [{queries!r}]")
    wanted = list(queries)
    for position, query in enumerate(wanted):
        if not isinstance(query, str):
            raise TypeError(
                f"queries[{position}] is {query!r} ({type(query).__name__}); "
                "every query must be a str"
            )
    return wanted


def _checked_k(k: int) -> int:
    if isinstance(k, bool) or index(k) < 1:
        raise SearchInputError(f"k is {k!r}; it must be an integer of at least 1")
    return index(k)
