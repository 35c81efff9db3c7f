"""The report of 121 queries, open in headless Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewriter.report import write
from tests import browser
from tests.report_folder import add_matrix, add_pages, add_training, fill

PATIENCE = 120_000  # milliseconds, for a machine that is busy otherwise
FILLERS = 116  # with the five others 121 queries: two whole pages of 50 and one of 21


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fill(tmp_path_factory.mktemp("result"), FILLERS)
    add_training(folder)
    add_matrix(folder)
    add_pages(folder)
    return write(folder)


class Tab:
    """A page that was opened, and what it asked for and complained about."""

    def __init__(self, chromium: Any, page: Path, hash_: str = "", **context: Any) -> None:
        self.context = chromium.new_context(**context)
        self.context.set_default_timeout(PATIENCE)
        self.tab = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda said: self.errors.append(said.text))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.url = page.as_uri() + hash_
        self.tab.goto(self.url)
        self.tab.wait_for_selector("html[data-ready]")

    @property
    def ids(self) -> list[str]:
        found: list[str] = self.tab.locator("#rows .id").all_inner_texts()
        return found

    @property
    def focused(self) -> str:
        """Id of the query whose row has the focus."""
        text: str = self.tab.evaluate("document.activeElement.querySelector('.id')?.textContent")
        return text

    def heading(self, name: str) -> Any:
        return self.tab.locator(f'#heads th[data-column="{name}"]')

    def open(self, query: str) -> Any:
        self.tab.locator("#rows .open", has_text=query).first.click()
        return self.opened()

    def opened(self) -> Any:
        self.tab.wait_for_selector("tr.detail .hits:not([data-busy])")
        return self.tab.locator("tr.detail")


@pytest.fixture
def report(chromium: Any, page: Path) -> Iterator[Tab]:
    tab = Tab(chromium, page)
    yield tab
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith("data:")] == [tab.url]
    tab.context.close()
