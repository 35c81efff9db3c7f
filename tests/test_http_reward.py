"""The http backend among others: built by name, in a hybrid, as the reward."""

import re
from typing import Any

import pytest

from retrievers import build_retriever, build_retrievers, settings_class
from retrievers.base import PermanentSearchError
from retrievers.http import HttpRetriever, HttpSettings
from rewards import RewardPanel, RewardSettings
from tests.http_engine import CORPUS, engine, ids, settings
from tests.search_server import SearchServer


def test_it_is_a_backend_like_the_others(server: SearchServer) -> None:
    assert settings_class("http") is HttpSettings
    built = build_retriever("http", settings(server), CORPUS)
    assert ids(built.search(["weather", " "], 1)) == [["d2"], []]


def test_a_hybrid_of_it(server: SearchServer) -> None:
    chosen = {
        "http": settings(server),
        "lexical": settings_class("lexical")(),
        "hybrid": settings_class("hybrid")(backends=["lexical", "http"]),
    }
    built = build_retrievers(["hybrid", "http"], chosen.__getitem__, CORPUS)
    assert ids(built["hybrid"].search(["예산"], 9)) == [["d0", "d1"]]
    assert re.fullmatch(r"[0-9a-f]{64}", built["hybrid"].fingerprint)


def panel(retriever: HttpRetriever, **given: Any) -> RewardPanel:
    values = {"backends": "http", "failure_penalty": 0.0, "backoff_s": 0.0, **given}
    return RewardPanel({"http": retriever}, RewardSettings.model_validate(values))


def rewards(panel: RewardPanel, completions: list[str]) -> list[float | None]:
    (function,) = panel.functions
    count = len(completions)
    values: list[float | None] = function(
        completions=completions,
        query_id=["q"] * count,
        query=["raw"] * count,
        relevant=[[{"id": "d1", "grade": 1.0}]] * count,
    )
    return values


def test_as_the_reward(server: SearchServer) -> None:
    server.faults = [(500, {}, b"")] * 2
    # "예산" finds d0 first and d1 second; "부산시" finds d1; "weather" only d2
    found = rewards(panel(engine(server)), ["예산", "부산시", "weather", "예산"])
    assert found == pytest.approx([0.63093, 1.0, 0.0, 0.63093], abs=1e-5)


def test_a_query_that_the_engine_cannot_answer_is_none_and_not_0(server: SearchServer) -> None:
    server.bad = {"poison"}
    found = rewards(panel(engine(server, retries=0), retries=1), ["부산시", "poison", "weather"])
    assert found == [1.0, None, 0.0]


def test_a_permanent_error_ends_the_run(server: SearchServer) -> None:
    server.always = (400, {}, b"malformed")
    with pytest.raises(PermanentSearchError, match="answered 400"):
        rewards(panel(engine(server)), ["a", "b"])
    assert len(server.requests) <= 2
