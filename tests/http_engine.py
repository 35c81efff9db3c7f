"""The http backend at a server of the tests, over five documents."""

from pathlib import Path
from typing import Any

from retrievers.base import Hit
from retrievers.http import HttpRetriever, HttpSettings
from retrievers.lexical import LexicalRetriever
from rewriter.config import load
from tests.search_server import SearchServer
from tests.tiny_corpus import Corpus

BACKENDS = Path(__file__).parent.parent / "configs" / "backends"
CORPUS = Corpus(
    ["서울시 예산 공고", "부산시 예산 공고", "the weather today", "train times", "jobs"]
)
LEXICAL = LexicalRetriever(CORPUS)
REQUEST = {"size": "{k}", "query": {"multi_match": {"query": "{query}"}}}
QUICK = {"probe": False, "backoff_s": 0.01, "retries": 2, "timeout_s": 5}


def settings(server: SearchServer | str, **given: Any) -> HttpSettings:
    url = server if isinstance(server, str) else f"{server.url}/docs/_search"
    paths = {"hits": "hits.hits", "id": "_id", "score": "_score"}
    return HttpSettings.model_validate({"url": url, "request": REQUEST, **paths, **QUICK, **given})


def engine(server: SearchServer | str, **given: Any) -> HttpRetriever:
    return HttpRetriever(CORPUS, settings(server, **given))


def ready(name: str, server: SearchServer, **given: Any) -> HttpRetriever:
    """The backend of a shipped file, at the test's server."""
    found: HttpSettings = load(BACKENDS / f"{name}.yaml").retrievers["http"]
    url = server.url + "/docs/" + found.url.rpartition("/")[2]
    return HttpRetriever(CORPUS, found.model_copy(update={"url": url, **QUICK, **given}))


def ids(results: list[list[Hit]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in results]
