"""Calls over HTTP with patience: time limits, tries, and which failures may pass."""

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from retrievers.base import PermanentSearchError, SearchError, import_extra
from retrievers.http.call_settings import CallSettings
from retrievers.http.secrets import Secrets

Read = TypeVar("Read")

MAY_PASS = frozenset({408, 425, 429})  # of the statuses from 400 to 499
SHOWN = 300  # characters of an answer in a message


class _Failed(SearchError):
    """A call that may succeed later. wait_s: seconds that the server asks for, or None."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Client:
    """Sends requests; threads may share one.

    Args:
        settings: where to, and how patiently.
        before: called before every try, such as to wait for a turn.

    Attributes:
        secrets: what the environment holds for these settings.

    Raises:
        MissingExtra: requests is not installed.
        retrievers.http.secrets.SecretError: a variable of the environment is missing.
        ValueError: the file that `verify` names is not there.
    """

    def __init__(self, settings: CallSettings, before: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._before = before
        self.secrets = Secrets(settings)
        self._requests = import_extra("requests", "http")
        below = import_extra("urllib3", "http").exceptions
        self._errors = (below.HTTPError, OSError)
        self._late = (self._requests.exceptions.Timeout, below.TimeoutError, TimeoutError)
        self._random = random.Random()  # of its own: a training's random state is not touched
        if isinstance(settings.verify, str) and not Path(settings.verify).exists():
            raise ValueError(f"{settings.place}.verify: there is no file {settings.verify!r}")
        self._session, self._options = self._open(), self._request_options()

    def call(
        self, params: Mapping[str, Any], body: bytes | None, read: Callable[[Any], Read]
    ) -> Read:
        """Send a request and read its answer; try again while that may help.

        Args:
            params: what follows `?`.
            body: as it is sent.
            read: the answer's JSON → what is returned.

        Raises:
            PermanentSearchError: a status from 300 to 499 other than `MAY_PASS`, or `read`'s.
            SearchError: the last try failed: another status, no connection, no answer in time, no
                JSON, or `read`'s.
        """
        for tried in range(self._settings.retries):
            try:
                return read(self._once(params, body))
            except PermanentSearchError:
                raise
            except SearchError as error:
                time.sleep(self._wait(tried, error))
        return read(self._once(params, body))

    def show(self, value: Any) -> str:
        """A short text of any JSON value for messages, without secrets."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = self.secrets.hide(" ".join(text.split()))
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"

    def _wait(self, tried: int, error: SearchError) -> float:
        asked = error.wait_s if isinstance(error, _Failed) else None
        if asked is None:  # callers that failed together need not come back together
            asked = self._settings.backoff_s * 2**tried * self._random.uniform(2 / 3, 1)
        return min(asked, self._settings.max_wait_s)

    def _once(self, params: Mapping[str, Any], body: bytes | None) -> Any:
        self._before()
        until = time.monotonic() + self._settings.timeout_s
        request = self._session.request
        try:
            with request(params=params, data=body, **self._options) as reply:
                content = self._content(reply, until)
        except self._errors as error:
            raise self._broken(error) from None  # its own text holds the whole address
        if reply.status_code >= 300:
            raise self._refused(reply, content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            said = self.show(content.decode(errors="replace"))
            raise SearchError(f"{self._name()} answered no JSON ({error}): {said}") from None

    def _content(self, reply: Any, until: float) -> bytes:
        """The body. A server that sends a byte now and then meets the time limit too."""
        pieces = []
        while piece := reply.raw.read1(2**16, decode_content=True):
            pieces.append(piece)
            if time.monotonic() > until:
                raise TimeoutError("the answer did not end in time")
        return b"".join(pieces)

    def _refused(self, reply: Any, content: bytes) -> SearchError:
        said = self.show(content.decode(errors="replace")) or "nothing more"
        text = f"{self._name()} answered {reply.status_code} {reply.reason}: {said}"
        if reply.status_code >= 500 or reply.status_code in MAY_PASS:
            return _Failed(text, _seconds(reply.headers.get("Retry-After")))
        if reply.status_code < 400:
            return PermanentSearchError(f"{text}; give the address that it leads to")
        return PermanentSearchError(text)

    def _broken(self, error: Exception) -> SearchError:
        """What a failure below HTTP is; requests' errors are OSErrors."""
        limit = f"within {self._settings.timeout_s:g} s"
        reason = f"gave no answer {limit}" if isinstance(error, self._late) else "cannot be reached"
        cause = self.secrets.hide(re.sub(r" with url: \S*", "", str(error)))
        text = f"{self._name()} {reason} ({type(error).__name__}: {cause:.{SHOWN}})"
        # An address or a header that cannot be sent.
        return PermanentSearchError(text) if isinstance(error, ValueError) else SearchError(text)

    def _name(self) -> str:
        return f"http: {self._settings.method} {self._settings.url}"

    def _open(self) -> Any:
        session = self._requests.Session()
        # Without an `auth` requests puts what ~/.netrc holds in place of our header.
        session.auth = lambda prepared: prepared
        session.headers.update(self.secrets.headers)
        size = self._settings.concurrency
        adapter = self._requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=size)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session

    def _request_options(self) -> dict[str, Any]:
        """What is the same in every request; set there, it goes before the environment's."""
        host = urlsplit(self._settings.url).hostname or ""
        return {
            "method": self._settings.method,
            "url": self._settings.url,
            "timeout": self._settings.timeout_s,
            "verify": self._settings.verify,
            # A proxy of the environment knows another localhost.
            "proxies": {"no_proxy": host} if _is_local(host) else {},
            # Redirects would turn POST into GET, and take the headers to another host.
            "allow_redirects": False,
            "stream": True,
        }


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds, given as such or as a date; None if it is neither."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        then = parsedate_to_datetime(header)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
