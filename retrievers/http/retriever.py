"""The http backend: requests from a template, calls at the same time, hits."""

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

from retrievers.answers import PROBE_HITS, Answers, probe_texts
from retrievers.base import Documents, Hit, PermanentSearchError, Retriever
from retrievers.http.answer import AnswerReader, Pairs
from retrievers.http.client import Client
from retrievers.http.settings import HttpSettings
from retrievers.http.template import fill
from retrievers.index import fingerprint

logger = logging.getLogger(__name__)


class HttpRetriever(Retriever):
    """Searches with an engine behind HTTP, and leaves its order as it is.

    Args:
        collection: whose documents the engine finds.
        settings: how to ask it.
        index_dir: not used.
        cache_size: answers to keep.

    Attributes:
        answers: counts of hits, and of those that are no document of the collection.

    Raises:
        MissingExtra: jmespath or requests is not installed.
        ValueError: an environment variable or a file that the settings name is missing.
        SearchError: the search at the start failed.

    A search raises what `retrievers.http.client.Client.call` raises. What was found before a call
    failed is kept, so that another try asks for the rest only.
    """

    backend = "http"
    keeps_index = False

    def __init__(
        self,
        collection: Documents,
        settings: HttpSettings,
        index_dir: Path | None = None,
        *,
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings
        self.fingerprint = fingerprint(
            {"documents": collection.fingerprint, "settings": settings.identity()}
        )
        self.answers = Answers(self.backend, collection, settings.unknown == "drop")
        self._client = Client(settings)
        variables = self._client.secrets.variables
        self._variables = variables(settings.params, "params")
        self._variables |= variables(settings.request, "request")
        self._read = AnswerReader(settings, self._client.show)
        if not settings.takes_k:
            logger.warning("http: the request holds no {k}; the engine decides how many hits come")
        if settings.probe:
            self._search(probe_texts(collection), PROBE_HITS)

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        size = self.settings.batch_size if self.settings.batch else 1
        pieces = [queries[start : start + size] for start in range(0, len(queries), size)]
        calls = self._call_all(pieces, max(k, self.settings.depth))
        errors = [error for call in calls if (error := call.exception())]
        found = {
            query: self.answers.read(pairs)
            for piece, call in zip(pieces, calls, strict=True)
            if not call.exception()
            for query, pairs in zip(piece, call.result(), strict=False)
        }
        self.answers.report()
        if errors:
            for query, hits in found.items():
                self._keep((self.fingerprint, k, query), tuple(hits[:k]))
            raise next((one for one in errors if isinstance(one, PermanentSearchError)), errors[0])
        return [found[query] for query in queries]

    def _call_all(self, pieces: list[list[str]], k: int) -> list[Future[list[Pairs]]]:
        """One call a piece, ended; those not begun when another one failed are empty."""
        stop = Event()

        def work(piece: list[str]) -> list[Pairs]:
            try:
                return [] if stop.is_set() else self._call(piece, k)
            except Exception:  # whatever it is: the others are told to stop, and it goes on up
                stop.set()
                raise

        with ThreadPoolExecutor(min(self.settings.concurrency, len(pieces))) as pool:
            try:
                calls = [pool.submit(work, piece) for piece in pieces]
                wait(calls)
            finally:
                stop.set()  # an interrupted search does not go through the rest either
        return calls

    def _call(self, queries: list[str], k: int) -> list[Pairs]:
        lines = self.settings.body == "ndjson"
        values = {**self._variables, "{query}": queries[0], "{queries}": queries, "{k}": k}
        body = self._lines(queries, k) if lines else self._body(values)
        params = fill(self.settings.params, values)
        return self._client.call(params, body, lambda answer: self._read(answer, len(queries)))

    def _body(self, values: Mapping[str, Any]) -> bytes | None:
        if self.settings.request is None:
            return None
        return _json(fill(self.settings.request, values))

    def _lines(self, queries: Sequence[str], k: int) -> bytes:
        """Every query's lines, each with its end."""
        lines = [
            _json(fill(line, {**self._variables, "{query}": query, "{k}": k}))
            for query in queries
            for line in self.settings.request
        ]
        return b"".join(line + b"\n" for line in lines)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
