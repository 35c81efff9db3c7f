"""The report in headless Chromium: what a reader does with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewriter.report import write
from tests import browser
from tests.report_folder import MALICE, add_matrix, add_pages, add_training, fill

pytestmark = pytest.mark.slow

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


def test_list_opens_with_the_largest_changes(report: Tab) -> None:
    # −1, +.369, +.131, then what did not change; the excluded query has no change.
    assert report.ids[:4] == ["q2", "q1", "q4", "q3"]
    assert len(report.ids) == 50
    assert report.tab.inner_text("#count") == "121 queries"
    assert report.tab.inner_text("#page") == "Page 1 of 3"


def test_sorting_by_a_heading_and_back(report: Tab) -> None:
    change = report.heading("change")
    change.locator("button").click()
    assert report.ids[:2] == ["q1", "q4"]
    assert change.get_attribute("aria-sort") == "descending"
    assert report.tab.evaluate("document.activeElement.closest('th').dataset.column") == "change"
    change.locator("button").click()
    assert report.ids[0] == "q2"
    assert change.get_attribute("aria-sort") == "ascending"
    report.tab.select_option("#sort", "given")
    assert report.ids[:4] == ["q1", "q2", "q3", "q4"]
    assert change.get_attribute("aria-sort") == "none"


def test_queries_without_a_value_come_last_either_way(report: Tab) -> None:
    for order in ("gain", "loss", "largest", "system-up", "base-down", "rank-up", "rank-down"):
        report.tab.select_option("#sort", order)
        report.tab.click("#next")
        report.tab.click("#next")
        last = report.ids[-4:]
        assert "excluded" in last, order


def test_searching(report: Tab) -> None:
    report.tab.fill("#search", "WEEKDAYS month")
    assert report.ids == ["q1"]
    assert report.tab.inner_text("#count") == "1 of 121 queries"
    report.tab.fill("#search", "일정")  # in the rewrite alone
    assert report.ids == ["q4"]
    report.tab.fill("#search", "z007")
    assert report.ids == ["z007"]
    report.tab.fill("#search", "no such word")
    assert report.ids == []
    assert report.tab.locator("#rows").inner_text() == "No query fits."


def test_showing_some(report: Tab) -> None:
    shown = {}
    for name in ("better", "worse", "failed", "missed", "excluded"):
        report.tab.select_option("#show", name)
        shown[name] = sorted(report.ids)
    assert shown == {
        "better": ["q1", "q4"],
        "worse": ["q2"],
        "failed": ["q3"],
        "missed": ["q2", "q3"],
        "excluded": ["excluded"],
    }


def test_opening_a_query(report: Tab) -> None:
    detail = report.open("q1")
    assert detail.locator("del").all_inner_texts() == ["how do I", "weekdays", "please"]
    assert detail.locator("ins").all_inner_texts() == ["days"]
    assert "raw query: rank 2, trained rewriter: rank 1" in detail.locator(".judged").inner_text()
    raw, trained = (detail.locator(".column").nth(side) for side in (0, 1))
    assert raw.locator("li").count() == trained.locator("li").count() == 4
    source = trained.locator("li.found")
    assert source.count() == 1
    assert source.locator(".rank").inner_text() == "1"
    assert source.locator("b").inner_text() == "Title of q1 <b>"
    assert source.locator(".badge").inner_text() == "source, relevant, grade 1"
    assert source.locator(".score").inner_text() == "4"
    assert source.locator(".move").inner_text().split("\n")[0] == "↑ 2"
    assert raw.locator("li.found .move").inner_text().split("\n")[0] == "→ 1"
    # The first hit of the raw query made room: other-q1-1, while other-q1-2 is new.
    assert raw.locator("li").nth(0).locator(".move").inner_text() == "gone"
    assert trained.locator("li").nth(1).locator(".move").inner_text() == "new"


def test_opening_again_closes(report: Tab) -> None:
    report.open("q1")
    button = report.tab.locator("#rows .open", has_text="q1").first
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert report.tab.locator("tr.detail").count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def test_markup_in_a_query_is_text(report: Tab) -> None:
    detail = report.open("q3")
    assert report.tab.locator("#rows .open", has_text="q3").locator(".text").inner_text() == MALICE
    assert detail.locator(".said").first.inner_text() == MALICE
    assert "No rewrite (no answer tag): the raw query was sent." in detail.inner_text()
    assert report.tab.locator('#queries script, #queries img[src="x"]').count() == 0


def test_a_page_is_shown_and_its_text_can_be_opened(report: Tab) -> None:
    source = report.open("q1").locator("li.found").first
    assert (
        source.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)")
        == 150
    )
    passage = source.locator(".passage")
    passage.locator("summary").click()
    assert passage.locator("p").inner_text().count("Text of q1.") == 30


def test_keyboard_alone(report: Tab) -> None:
    press = report.tab.keyboard.press
    press("/")
    assert report.tab.evaluate("document.activeElement.id") == "search"
    press("Enter")
    assert report.focused == "q2"
    press("j")
    assert report.focused == "q1"
    press("ArrowDown")
    assert report.focused == "q4"
    press("k")
    press("Enter")
    assert report.opened().get_attribute("data-of") == "0"
    assert report.focused == "q1"
    press("j")
    assert report.focused == "q4"
    press("Escape")
    assert report.tab.locator("tr.detail").count() == 0
    assert report.focused == "q1"
    press("k")
    press("k")  # the first row of the first page: stays
    assert report.focused == "q2"


def test_keyboard_turns_pages(report: Tab) -> None:
    report.tab.select_option("#sort", "given")
    report.tab.locator("#rows .open").nth(49).focus()
    report.tab.keyboard.press("j")
    assert report.tab.inner_text("#page") == "Page 2 of 3"
    assert report.focused == report.ids[0]
    report.tab.keyboard.press("k")
    assert report.tab.inner_text("#page") == "Page 1 of 3"
    assert report.focused == report.ids[49]


def test_letters_typed_into_the_search_are_letters(report: Tab) -> None:
    report.tab.focus("#search")
    report.tab.keyboard.type("jk/")
    assert report.tab.input_value("#search") == "jk/"


def test_everything_with_the_focus_can_be_reached_in_order(report: Tab) -> None:
    report.tab.focus("#search")
    seen = []
    for _ in range(7):
        report.tab.keyboard.press("Tab")
        seen.append(
            report.tab.evaluate("document.activeElement.id || document.activeElement.innerText")
        )
    assert seen[:5] == ["backend", "system", "measure", "show", "sort"]
    assert seen[5].startswith("Query")


def test_address_leads_to_the_opened_query(chromium: Any, page: Path, report: Tab) -> None:
    report.tab.select_option("#backend", "semantic")
    report.open("q4")
    hash_ = report.tab.evaluate("location.hash")
    again = Tab(chromium, page, hash_)
    assert again.opened().get_attribute("data-of") == "3"
    assert again.tab.input_value("#backend") == "semantic"
    again.context.close()


def test_baseline_alone_has_no_change(report: Tab) -> None:
    report.tab.select_option("#system", "raw")
    assert report.heading("change").count() == report.heading("base").count() == 0
    assert report.open("q1").locator(".column").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_needs_no_sideways_scrolling(chromium: Any, page: Path, scheme: str) -> None:
    tab = Tab(chromium, page, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    for details in tab.tab.locator("section > details > summary").all():
        details.click()
    tab.open("q1")
    widths = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
    assert tab.tab.evaluate(widths) == [390, 390, 390]
    assert tab.errors == []
    tab.context.close()


def test_theme_follows_the_system_until_it_is_chosen(chromium: Any, page: Path) -> None:
    tab = Tab(chromium, page, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = tab.tab.evaluate(background)
    tab.tab.click("#theme")
    assert tab.tab.inner_text("#theme") == "Theme: light"
    assert tab.tab.evaluate(background) == "rgb(255, 255, 255)" != dark
    tab.tab.reload()
    tab.tab.wait_for_selector("html[data-ready]")
    assert tab.tab.evaluate(background) == "rgb(255, 255, 255)"
    tab.tab.click("#theme")
    assert tab.tab.evaluate(background) == dark
    tab.context.close()


def test_plots_take_the_colours_of_the_theme(chromium: Any, page: Path) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        tab = Tab(chromium, page, color_scheme=scheme)
        text = tab.tab.locator("#plots svg text").first
        colours.add(text.evaluate("text => getComputedStyle(text).fill"))
        tab.context.close()
    assert len(colours) == 2


def test_nothing_moves_where_that_is_not_wanted(chromium: Any, page: Path) -> None:
    tab = Tab(chromium, page, reduced_motion="reduce")
    found = tab.tab.evaluate(
        "[...document.querySelectorAll('*')].map(e => getComputedStyle(e)).filter(s => "
        "s.scrollBehavior === 'smooth' || parseFloat(s.transitionDuration) || "
        "s.animationName !== 'none').length"
    )
    assert found == 0
    tab.context.close()


def test_without_a_browser_the_tests_fail_and_name_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("RLQR_NO_BROWSER", raising=False)
    with pytest.raises(pytest.fail.Exception, match=r"apt-get install .* chromium"):
        browser.chromium().__enter__()
    monkeypatch.setenv("RLQR_NO_BROWSER", "1")
    with pytest.raises(pytest.skip.Exception):
        browser.chromium().__enter__()
