"""The http backend against a real server: what is sent, what is read, which failures may pass."""

import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers import build_retriever, build_retrievers, settings_class
from retrievers.base import CacheInfo, Hit, PermanentSearchError, SearchError
from retrievers.http import HttpRetriever, HttpSettings
from retrievers.http.secrets import SecretError
from retrievers.http.template import fill
from retrievers.lexical import LexicalRetriever
from rewards import RewardPanel, RewardSettings
from rewriter.config import load
from tests.search_server import SearchServer, serving
from tests.test_lexical import Corpus

BACKENDS = Path(__file__).parent.parent / "configs" / "backends"
CORPUS = Corpus(
    ["서울시 예산 공고", "부산시 예산 공고", "the weather today", "train times", "jobs"]
)
LEXICAL = LexicalRetriever(CORPUS)
REQUEST = {"size": "{k}", "query": {"multi_match": {"query": "{query}"}}}
QUICK = {"probe": False, "backoff_s": 0.01, "retries": 2, "timeout_s": 5}


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with serving(LEXICAL) as running:
        yield running


def settings(server: SearchServer | str, **given: Any) -> HttpSettings:
    url = server if isinstance(server, str) else f"{server.url}/docs/_search"
    paths = {"hits": "hits.hits", "id": "_id", "score": "_score"}
    return HttpSettings.model_validate({"url": url, "request": REQUEST, **paths, **QUICK, **given})


def engine(server: SearchServer | str, **given: Any) -> HttpRetriever:
    return HttpRetriever(CORPUS, settings(server, **given))


def ids(results: list[list[Hit]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in results]


def ready(name: str, server: SearchServer, **given: Any) -> HttpRetriever:
    """The backend of a shipped file, at the test's server."""
    found: HttpSettings = load(BACKENDS / f"{name}.yaml").retrievers["http"]
    url = server.url + "/docs/" + found.url.rpartition("/")[2]
    return HttpRetriever(CORPUS, found.model_copy(update={"url": url, **QUICK, **given}))


# -- what is sent, what comes back ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["opensearch", "opensearch_msearch", "elasticsearch"])
def test_the_ready_files_bring_back_what_the_engine_found(
    name: str, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTIC_API_KEY", "dGVzdA==")
    retriever = ready(name, server)
    queries = ["예산", 'a "train" \\ {k} {query} \n', "no such word", "weather", "예산"]
    assert retriever.search(queries, 2) == LEXICAL.search(queries, 2)
    assert len(server.requests) == (1 if "msearch" in name else 4)
    if name == "elasticsearch":
        assert server.requests[0][2]["Authorization"] == "ApiKey dGVzdA=="


def test_values_go_into_the_structure(server: SearchServer) -> None:
    nasty = '"}, {k} {queries} \\ 서울\n\ud800'
    request = {**REQUEST, "note": "first {k} of {query}", "n": 3, "list": [None, "{k}"]}
    engine(server, request=request).search([nasty], 2)
    assert server.bodies == [
        {
            "size": 2,
            "query": {"multi_match": {"query": nasty}},
            "note": f"first 2 of {nasty}",
            "n": 3,
            "list": [None, 2],
        }
    ]


@given(st.text(), st.integers(1, 9))
def test_what_is_filled_in_is_not_read_again(query: str, k: int) -> None:
    values = {"{query}": query, "{k}": k}
    filled = fill({"a": "{query}", "b": ["<{query}>{k}", 1.5], "{k}": "{other}"}, values)
    assert filled == {"a": query, "b": [f"<{query}>{k}", 1.5], "{k}": "{other}"}


def test_get_with_parameters(server: SearchServer) -> None:
    retriever = engine(
        f"{server.url}/solr/select?wt=json",
        method="GET",
        request=None,
        params={"q": "{query}", "rows": "{k}"},
        hits="response.docs",
        id="id",
    )
    assert retriever.search(["예산 & 공고?"], 9) == [[Hit("d0", -1.0), Hit("d1", -2.0)]]
    method, path, headers = server.requests[0]
    assert (method, path.partition("&")[0]) == ("GET", "/solr/select?wt=json")
    assert "Content-Type" not in headers


def test_a_batch_as_a_list(server: SearchServer) -> None:
    found = [[["d1", 2], ["d0", 1]], [], [["d2", 5]]]
    server.always = (200, {}, json.dumps({"results": found}).encode())
    retriever = engine(
        server,
        batch=True,
        request={"q": "{queries}", "k": "{k}"},
        answers="results",
        hits="@",
        id="[0]",
        score="[1]",
    )
    assert retriever.search(["a", "b", "c"], 2) == [
        [Hit("d1", 2.0), Hit("d0", 1.0)],
        [],
        [Hit("d2", 5.0)],
    ]
    assert server.bodies == [{"q": ["a", "b", "c"], "k": 2}]
    with pytest.raises(PermanentSearchError, match="found 3 answers to 2 queries"):
        retriever.search(["e", "f"], 2)


def test_batches_are_cut(server: SearchServer) -> None:
    queries = [f"예산 {n}" for n in range(5)]
    assert ids(ready("opensearch_msearch", server, batch_size=2).search(queries, 1)) == [["d0"]] * 5
    assert sorted(len(lines) for lines in server.bodies) == [2, 4, 4]


def test_calls_run_at_the_same_time_and_keep_their_positions(server: SearchServer) -> None:
    server.always = 0.1
    queries = ["weather", "train", "jobs", "예산"] + [f"weather {n}" for n in range(4)]
    found = engine(server, concurrency=4).search(queries, 1)
    assert ids(found) == [["d2"], ["d3"], ["d4"], ["d0"]] + [["d2"]] * 4
    assert 2 <= server.most_at_once <= 4
    assert server.connections <= 4, "connections are kept open"


def test_connections_are_used_again(server: SearchServer) -> None:
    retriever = engine(server, concurrency=1)
    for n in range(3):
        retriever.search([f"예산 {n}"], 1)
    assert (len(server.requests), server.connections) == (3, 1)


def test_the_engines_order_is_kept_and_a_document_counts_once(server: SearchServer) -> None:
    hits = [("d3", 1.0), ("d1", 9.0), ("d3", 8.0), ("d0", 2.0)]
    found = {"hits": {"hits": [{"_id": one, "_score": score} for one, score in hits]}}
    server.always = (200, {}, json.dumps(found).encode())
    retriever = engine(server, depth=20)
    assert retriever.search(["a"], 2) == [[Hit("d3", 1.0), Hit("d1", 9.0)]]
    assert server.bodies[0]["size"] == 20, "asked for more than k, for the passages of one document"


def test_missing_scores_become_ranks_and_whole_numbers_ids(server: SearchServer) -> None:
    found = {"hits": {"hits": [{"_id": 7, "_score": None}, {"_id": "d0", "_score": 3.0}]}}
    server.always = (200, {}, json.dumps(found).encode())
    assert engine(server).search(["a"], 9) == [[Hit("7", -1.0), Hit("d0", -2.0)]]


@pytest.mark.parametrize(("unknown", "kept"), [("keep", ["x1", "d0"]), ("drop", ["d0"])])
def test_unknown_ids_are_counted_and_reported(
    unknown: str, kept: list[str], server: SearchServer, caplog: pytest.LogCaptureFixture
) -> None:
    found = {"hits": {"hits": [{"_id": "x1"}, {"_id": "d0"}]}}
    server.always = (200, {}, json.dumps(found).encode())
    retriever = engine(server, unknown=unknown)
    with caplog.at_level(logging.WARNING):
        assert ids(retriever.search(["a"], 9)) == [kept]
        retriever.search(["b"], 9)
    assert (retriever.answers.unknown, retriever.answers.hits) == (2, 4)
    assert len(caplog.records) == 1
    assert "1 of the 2 hits" in caplog.text
    assert "'x1'" in caplog.text
    assert "'d0'" in caplog.text


# -- failures that may pass -----------------------------------------------------------------------


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


# -- failures that will not pass ------------------------------------------------------------------


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


# -- secrets and proxies --------------------------------------------------------------------------


def test_secrets_are_sent_and_never_shown(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret-value")
    server.faults = [(400, {}, b"no such key: s3cret-value")]
    chosen = settings(server, headers={"X-Api-Key": "Key ${MY_KEY}", "X-Plain": "plain"})
    retriever = HttpRetriever(CORPUS, chosen)
    with pytest.raises(PermanentSearchError, match=r"no such key: \$\{MY_KEY\}") as caught:
        retriever.search(["a"], 1)
    assert "s3cret" not in str(caught.value)
    assert server.requests[0][2]["X-Api-Key"] == "Key s3cret-value"
    assert server.requests[0][2]["X-Plain"] == "plain"
    assert "s3cret" not in chosen.model_dump_json()


def test_basic_authentication(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OS_USER", "admin")
    monkeypatch.setenv("OS_PASSWORD", "pa:ss")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    engine(server, basic_auth="${OS_USER}:${OS_PASSWORD}").search(["a"], 1)
    # base64 of admin:pa:ss; what ~/.netrc holds does not take its place
    assert server.requests[0][2]["Authorization"] == "Basic YWRtaW46cGE6c3M="
    engine(server).search(["a"], 1)
    assert "Authorization" not in server.requests[1][2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "MY_KEY is not set; set it before the start: export MY_KEY=…"),
        ("", "MY_KEY is not set"),
        ("s3cret\n", "MY_KEY holds a line break"),
        ("s3crét", "MY_KEY holds"),
    ],
)
def test_a_variable_that_cannot_be_sent(
    value: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(
        SecretError, match=f"headers.X-Key: the environment variable {message}"
    ) as e:
        engine("http://127.0.0.1:1/", headers={"X-Key": "${MY_KEY}"})
    assert "s3cr" not in str(e.value)


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_not_asked_for_localhost(
    variable: str, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    for host in ("127.0.0.1", "localhost"):
        url = server.url.replace("127.0.0.1", host) + "/_search"
        assert ids(engine(url).search(["weather"], 1)) == [["d2"]]


def test_a_proxy_is_asked_for_other_hosts(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert ids(engine("http://search.invalid/_search").search(["weather"], 1)) == [["d2"]]
    assert server.requests[0][1] == "http://search.invalid/_search"


# -- settings -------------------------------------------------------------------------------------

SOUND = {"url": "http://x/_search", "hits": "hits", "request": {"q": "{query}", "n": "{k}"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "localhost:9200/x"}, "give it in full"),
        ({"url": "http:///x"}, "give it in full"),
        ({"url": "https://admin:s3cret@x/"}, "a user or password in it"),
        ({"headers": {"Authorization": "Basic s3cret"}}, r"write \$\{ITS_NAME\}"),
        ({"headers": {"x-typesense-api-key": "s3cret"}}, r"write \$\{ITS_NAME\}"),
        ({"headers": {"a b": "s3cret"}}, "no header can have this name"),
        ({"basic_auth": "admin:s3cret"}, r"write \$\{USER\}:\$\{PASSWORD\}"),
        ({"hits": "hits["}, "not JMESPath"),
        ({"request": {"q": "{quer}", "secret": "s3cret"}}, r"hold \{query\} as a text"),
        ({"request": None}, r"hold \{query\} as a text"),
        ({"batch": True}, r"hold \{queries\} as a text, and not \{query\}"),
        ({"batch": True, "request": {"q": "all: {queries}"}}, r"hold \{queries\}"),
        ({"body": "ndjson"}, "needs batch: true"),
        ({"timeout_s": 0}, "greater than 0"),
        ({"concurrency": 0}, "greater than or equal to 1"),
        ({"metod": "GET"}, "Extra inputs"),
    ],
)
def test_faults_of_the_settings(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        HttpSettings.model_validate(SOUND | given)
    assert "s3cret" not in str(caught.value)


def test_no_k_is_warned_of(caplog: pytest.LogCaptureFixture, server: SearchServer) -> None:
    with caplog.at_level(logging.WARNING):
        engine(server, request={"query": {"multi_match": {"query": "{query}"}}})
    assert "holds no {k}" in caplog.text


def test_a_file_of_authorities_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"verify: there is no file 'absent\.pem'"):
        engine("https://localhost/", verify="absent.pem")


def test_the_fingerprint_is_of_what_is_found() -> None:
    url = "http://127.0.0.1:1/_search"
    first = engine(url).fingerprint
    assert engine(url, timeout_s=9, concurrency=2, retries=0).fingerprint == first
    for other in ({"version": "2"}, {"hits": "hits"}, {"depth": 9}, {"unknown": "drop"}):
        assert engine(url, **other).fingerprint != first
    assert engine("http://127.0.0.1:1/other").fingerprint != first


def test_it_is_a_backend_like_the_others(server: SearchServer) -> None:
    assert settings_class("http") is HttpSettings
    built = build_retriever("http", settings(server), CORPUS)
    assert ids(built.search(["weather", " "], 1)) == [["d2"], []]


# -- as the reward --------------------------------------------------------------------------------


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


def test_a_hybrid_of_it(server: SearchServer) -> None:
    chosen = {
        "http": settings(server),
        "lexical": settings_class("lexical")(),
        "hybrid": settings_class("hybrid")(backends=["lexical", "http"]),
    }
    built = build_retrievers(["hybrid", "http"], chosen.__getitem__, CORPUS)
    assert ids(built["hybrid"].search(["예산"], 9)) == [["d0", "d1"]]
    assert re.fullmatch(r"[0-9a-f]{64}", built["hybrid"].fingerprint)
