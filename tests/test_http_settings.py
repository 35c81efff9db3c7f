"""The http backend: its settings, its secrets and the proxies around it."""

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.base import PermanentSearchError
from retrievers.http import HttpRetriever, HttpSettings
from retrievers.http.secrets import SecretError
from tests.http_engine import CORPUS, engine, ids, settings
from tests.search_server import SearchServer

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
        ({"url": "https://x/?q=1&api_key=s3cret"}, "a secret, api_key: give it as a header or in"),
        ({"url": "https://x/?q=${s3cret}"}, r"no \$\{NAME\} is filled in here"),
        ({"params": {"api_key": "s3cret"}}, r"write \$\{ITS_NAME\}"),
        ({"params": {"key": ["s3cret"]}}, r"write \$\{ITS_NAME\}"),
        ({"params": {"access_token": 7}}, r"write \$\{ITS_NAME\}"),
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
    tenants = [engine(url, headers={name: "a"}).fingerprint for name in ("X-Tenant", "x-tenant")]
    assert tenants[0] == tenants[1] != first
    assert engine(url, headers={"X-Tenant": "b"}).fingerprint not in (first, tenants[0])


def test_a_secret_is_no_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "one")
    url = "http://127.0.0.1:1/_search"
    given: dict[str, Any] = {"headers": {"X-Api-Key": "${MY_KEY}"}, "params": {"key": "${MY_KEY}"}}
    first = engine(url, **given).fingerprint
    monkeypatch.setenv("MY_KEY", "other")
    assert engine(url, **given).fingerprint == first


@pytest.mark.parametrize("name", ["keyword", "keys", "routing", "author", "monkey"])
def test_a_parameter_that_is_no_secret(name: str) -> None:
    given = SOUND | {"params": {name: "plain"}}
    assert HttpSettings.model_validate(given).params == {name: "plain"}


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


def test_secrets_in_parameters_and_body(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret {query}/%")
    request = settings(server).request
    given: dict[str, Any] = {
        "params": {"api_key": "${MY_KEY}"},
        "request": {**request, "account": {"key": "id ${MY_KEY}"}},
    }
    retriever = HttpRetriever(CORPUS, settings(server, **given))
    server.faults = [(400, {}, b"no key s3cret {query}/%, s3cret%20%7Bquery%7D%2F%25")]
    with pytest.raises(PermanentSearchError, match=r"no key \$\{MY_KEY\}, \$\{MY_KEY\}") as caught:
        retriever.search(["pie"], 1)
    assert "s3cret" not in str(caught.value)
    # What the variable holds is never read as a placeholder.
    assert server.requests[0][1].endswith("?api_key=s3cret+%7Bquery%7D%2F%25")
    assert server.bodies[0]["account"] == {"key": "id s3cret {query}/%"}


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
