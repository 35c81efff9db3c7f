"""The report in headless Chromium: by keyboard, on a phone, in both themes."""

from pathlib import Path
from typing import Any

import pytest

from tests import browser, report_tab
from tests.report_tab import Tab

chromium, page, report = report_tab.chromium, report_tab.page, report_tab.report  # fixtures
pytestmark = pytest.mark.slow


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
