"""The http backend against a real server: what is sent, and what is read."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Hit, PermanentSearchError
from retrievers.http.template import fill
from tests.http_engine import LEXICAL, REQUEST, engine, ids, ready
from tests.search_server import SearchServer


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
