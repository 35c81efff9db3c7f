"""Headless Chromium for the tests and the benchmark of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    """A Playwright browser. Where there is none the test fails, unless RLQR_NO_BROWSER=1."""
    if os.environ.get("RLQR_NO_BROWSER") == "1":
        pytest.skip("RLQR_NO_BROWSER=1")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail(
            "no Chromium: apt-get install --no-install-recommends chromium "
            "(or RLQR_NO_BROWSER=1 to do without these tests)"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox; the pages are our own.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=120_000
        )
        yield browser
        browser.close()
