"""The http backend against a real server: failures that may pass."""

import json
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from retrievers.base import CacheInfo, PermanentSearchError, SearchError
from tests.http_engine import engine, ids, ready
from tests.search_server import SearchServer


def test_500_twice_then_fine(server: SearchServer) -> None:
    server.faults = [(500, {}, b"oops"), (503, {}, b"")]
    assert ids(engine(server).search(["weather"], 1)) == [["d2"]]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_may_pass(status: int, server: SearchServer) -> None:
    server.always = (status, {}, b'{"error": "busy"}')
    with pytest.raises(SearchError, match=f'answered {status} .*"busy"') as caught:
        engine(server).search(["a"], 1)
    assert not isinstance(caught.value, PermanentSearchError)
    assert len(server.requests) == 3


def test_retry_after_in_seconds_and_as_a_date(server: SearchServer) -> None:
    server.faults = [(429, {"Retry-After": "1"}, b"slow down")]
    engine(server).search(["a"], 1)
    assert 1.0 <= server.times[1] - server.times[0] < 10
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
    server.faults = [(503, {"Retry-After": then}, b"")]
    engine(server).search(["b"], 1)
    assert 1.0 <= server.times[3] - server.times[2] < 10  # dates are whole seconds


@pytest.mark.parametrize("asked", ["3600", "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_waits_are_bounded(asked: str, server: SearchServer) -> None:
    server.faults = [(429, {"Retry-After": asked}, b"")]
    engine(server, max_wait_s=0.1).search(["a"], 1)
    assert server.times[1] - server.times[0] < 10


def test_an_odd_retry_after_is_ignored(server: SearchServer) -> None:
    server.faults = [(429, {"Retry-After": "soon"}, b"")]
    assert ids(engine(server).search(["weather"], 1)) == [["d2"]]


@pytest.mark.parametrize("fault", [20.0, "drip"])
def test_no_answer_in_time(fault: Any, server: SearchServer) -> None:
    server.always = fault
    started = time.monotonic()
    with pytest.raises(SearchError, match=r"gave no answer within 0\.3 s"):
        engine(server, timeout_s=0.3, retries=1).search(["a"], 1)
    assert time.monotonic() - started < 10
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ((200, {}, b'{"hits": {"hits": [{"_i'), "answered no JSON"),
        ((200, {}, b"<html>proxy</html>"), "<html>proxy</html>"),
        ((204, {}, b""), "answered no JSON"),
        ((200, {}, b"[" * 200_000), r"answered no JSON \(maximum recursion depth"),
        ((200, {"Content-Encoding": "gzip"}, b"not gzip"), "cannot be reached"),
        ("hang up", "cannot be reached"),
    ],
)
def test_broken_answers_may_pass(fault: Any, message: str, server: SearchServer) -> None:
    server.always = fault
    with pytest.raises(SearchError, match=message) as caught:
        engine(server).search(["a"], 1)
    assert not isinstance(caught.value, PermanentSearchError)
    assert len(server.requests) == 3


def test_connection_refused() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/_search"
    with pytest.raises(SearchError, match=r"cannot be reached .*refused") as caught:
        engine(url).search(["a"], 1)
    assert not isinstance(caught.value, PermanentSearchError)


@pytest.mark.parametrize(
    "partial",
    [{"timed_out": True}, {"_shards": {"total": 2, "successful": 1, "failed": 1}}],
)
def test_a_partial_answer_is_a_failed_search(partial: Any, server: SearchServer) -> None:
    body = {**LEXICAL_ANSWER, **partial}
    server.faults = [(200, {}, json.dumps(body).encode())]
    retriever = ready("opensearch", server)
    assert ids(retriever.search(["weather"], 1)) == [["d2"]], "asked again"
    server.always = (200, {}, json.dumps(body).encode())
    with pytest.raises(SearchError, match="the answer is not complete, `failed: timed_out"):
        retriever.search(["train"], 1)


LEXICAL_ANSWER = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": []}}


def test_one_query_of_msearch_that_fails(server: SearchServer) -> None:
    server.bad = {"poison"}
    retriever = ready("opensearch_msearch", server)
    with pytest.raises(SearchError, match="search_phase_execution_exception"):
        retriever.search(["weather", "poison"], 1)


def test_what_was_found_before_a_failure_is_not_asked_again(server: SearchServer) -> None:
    server.bad = {"poison"}
    retriever = engine(server, concurrency=1, retries=0)
    with pytest.raises(SearchError, match="answered 500"):
        retriever.search(["weather", "train", "poison", "jobs"], 1)
    assert len(server.requests) == 3, "what was not begun is not begun"
    server.bad = set()
    assert ids(retriever.search(["weather", "train", "poison", "jobs"], 1)) == [
        ["d2"],
        ["d3"],
        [],
        ["d4"],
    ]
    assert len(server.requests) == 5
    assert retriever.cache_info() == CacheInfo(hits=2, misses=2, size=4)
