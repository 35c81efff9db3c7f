"""The report in headless Chromium: the list of queries, and a query that is opened."""

from pathlib import Path
from typing import Any

import pytest

from tests import report_tab
from tests.report_folder import MALICE
from tests.report_tab import Tab

chromium, page, report = report_tab.chromium, report_tab.page, report_tab.report  # fixtures
pytestmark = pytest.mark.slow


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
