"""Shared by all tests."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

# Two processes with two spinning threads each are many times slower on two cores than with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import retrievers  # noqa: F401 - puts the torchvision guard in place before transformers

if TYPE_CHECKING:
    from tests.ablation_runs import Jobs
    from tests.search_server import SearchServer

# How long an example takes says more about a shared machine than about the code.
hypothesis.settings.register_profile("rlqr", deadline=None)
hypothesis.settings.load_profile("rlqr")

LOGGERS = ("retrievers", "rewards", "rewriter")


@pytest.fixture(autouse=True)
def _logging_of_its_own() -> Iterator[None]:
    """A command that a test runs sends the log to that test's stderr, which is closed after it."""
    before = [
        (log, log.handlers, log.level, log.propagate) for log in map(logging.getLogger, LOGGERS)
    ]
    yield
    for log, log.handlers, level, log.propagate in before:
        log.setLevel(level)


@pytest.fixture
def signals() -> Iterator[None]:
    """What a test's own worker does about signals ends with the test."""
    from tests.ablation_runs import signals_as_before

    with signals_as_before():
        yield


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> "Jobs":
    """A worker's jobs, done in this process."""
    from rewriter.ablation import worker
    from tests.ablation_runs import Jobs

    made = Jobs()
    monkeypatch.setattr(worker, "run_bound", made)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration of four lines."""
    from tests.config_files import BASE

    path = tmp_path / "my.yaml"
    path.write_text(BASE)
    return path


@pytest.fixture(params=["rank-bm25", "bm25s"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each of the two engines of BM25."""
    return str(request.param)


@pytest.fixture
def server() -> Iterator["SearchServer"]:
    """A search engine over HTTP, for the http backend of `tests.http_engine`."""
    from tests.http_engine import LEXICAL
    from tests.search_server import serving

    with serving(LEXICAL) as running:
        yield running
