"""The http backend against a real server: failures that will not pass."""

import json
from threading import Barrier
from typing import Any

import pytest

from retrievers.base import PermanentSearchError, SearchError
from tests.http_engine import engine
from tests.search_server import SearchServer


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 302, 304])
def test_statuses_that_will_not_pass(status: int, server: SearchServer) -> None:
    server.always = (status, {"Location": server.url}, b'{"error": {"reason": "malformed"}}')
    if status == 304:
        server.always = (status, {}, b"")
    with pytest.raises(PermanentSearchError, match=f"answered {status}"):
        engine(server).search(["a"], 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"items": []}, r"`hits: hits.hits` found nothing, not a list, in \{\"items\": \[\]\}"),
        ({"hits": {"hits": {}}}, "`hits: hits.hits` found dict"),
        ([], "`hits: hits.hits` found nothing"),
        ({"hits": {"hits": [{"id": "d0"}]}}, r"`id: _id` finds nothing in the hit \{\"id\""),
        ({"hits": {"hits": [{"_id": True}]}}, "a hit has the id True"),
        ({"hits": {"hits": [{"_id": 1.5}]}}, r"a hit has the id 1\.5"),
        ({"hits": {"hits": [{"_id": "d0", "_score": "high"}]}}, "a hit has the score 'high'"),
        ({"hits": {"hits": [{"_id": "d0", "_score": float("nan")}]}}, "a hit has the score nan"),
    ],
)
def test_missing_fields_name_the_expression(
    answer: Any, message: str, server: SearchServer
) -> None:
    server.always = (200, {}, json.dumps(answer).encode())
    with pytest.raises(PermanentSearchError, match=message):
        engine(server).search(["a"], 1)
    assert len(server.requests) == 1


def test_an_expression_of_the_wrong_type(server: SearchServer) -> None:
    with pytest.raises(PermanentSearchError, match="`hits: keys\\(took\\)` cannot be used"):
        engine(server, hits="keys(took)").search(["a"], 1)


def test_a_permanent_failure_goes_before_others(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = engine(server, concurrency=2)
    both = Barrier(2)  # the second call has to be under way when the first one fails

    def call(queries: list[str], k: int) -> Any:
        both.wait(timeout=30)
        raise SearchError("500") if queries == ["a"] else PermanentSearchError("400")

    monkeypatch.setattr(found, "_call", call)
    with pytest.raises(PermanentSearchError, match="400"):
        found.search(["a", "b"], 1)


def test_the_first_search_is_at_the_start(server: SearchServer) -> None:
    engine(server, probe=True)
    # Two calls at once: which of them arrives first is open.
    assert sorted(body["query"]["multi_match"]["query"] for body in server.bodies) == [
        "서울시",
        "서울시 예산 공고",
    ]
    server.always = (401, {}, b"who are you")
    with pytest.raises(PermanentSearchError, match="answered 401 Unauthorized: who are you"):
        engine(server, probe=True)
