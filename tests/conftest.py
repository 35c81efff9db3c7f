"""Shared by all tests."""

import logging
import os
from collections.abc import Iterator

import hypothesis
import pytest

# Two processes with two spinning threads each are many times slower on two cores than with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import retrievers  # noqa: F401 - puts the torchvision guard in place before transformers

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
