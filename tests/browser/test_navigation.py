"""The bar, the row below it, the sidebar and the browser's history."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fsviz.ui.parts.page import HOME, PAGES
from tests.browser.conftest import eventually, serving, settle

BAR = """() => {
    const boxes = (query) => [...document.querySelectorAll(query)]
        .map((node) => node.getBoundingClientRect())
        .filter((box) => box.width > 0 && box.height > 0 && box.top < 60)
        .map((box) => [box.left, box.right]);
    return {
        menus: boxes('[data-testid="stTopNav"] a, [data-testid="stTopNavSection"]')
            .concat(boxes('[data-testid="stExpandSidebarButton"]')),
        tools: boxes('.st-key-fsviz_tools > *'),
        folded: /[0-9]+ more/.test(document.querySelector('[data-testid="stHeader"]').innerText),
        wide: document.documentElement.scrollWidth - window.innerWidth,
    };
}"""


@pytest.mark.parametrize("slug", [HOME, "predict_accuracy", "add_images"])
def test_the_first_visitor_of_a_server_has_the_bar_on_a_deep_link(browser, tmp_path: Path, slug: str) -> None:
    """A server of its own: before its first page, Streamlit would offer the folder pages/ in place of the router."""
    page = PAGES[slug]
    with serving(tmp_path / "home") as url:
        tab = browser.new_page()
        tab.goto(f"{url}/{'' if slug == HOME else slug}?dataset=cifar100")
        expect(tab.locator("h1").first).to_have_text(page.question)
        expect(tab.get_by_test_id("stTopNavSection")).to_have_count(4)
        settle(tab)
        assert "dataset=cifar100" in tab.url and "Page not found" not in tab.content()
        tab.close()


def test_back_takes_back_one_menu_click_at_a_time(page, app: str) -> None:
    page.goto(f"{app}/classes?dataset=dtd&split=train")
    settle(page)
    start = page.url
    for slug in ("runs", "compare_datasets"):
        page.get_by_test_id("stTopNavSection").filter(has_text=PAGES[slug].group).click()
        page.get_by_test_id("stTopNavDropdownLink").filter(has_text=PAGES[slug].label).first.click()
        page.locator("h1", has_text=PAGES[slug].question).wait_for()
        page.wait_for_url(re.compile(f"{slug}.*dataset=dtd"))
        settle(page)
    page.go_back()
    page.locator("h1", has_text=PAGES["runs"].question).wait_for()
    settle(page)
    assert "dataset=dtd" in page.url
    page.go_back()
    page.locator("h1", has_text=PAGES["classes"].question).wait_for()
    settle(page)
    expect(page).to_have_url(start)


def test_tools_never_lie_on_the_menus(page, app: str) -> None:
    page.goto(f"{app}/classes?dataset=dtd")
    settle(page)
    for classroom in ("", "&classroom=true"):
        if classroom:
            page.goto(f"{app}/classes?dataset=dtd{classroom}")
            settle(page)
        for width in (390, 768, 1000, 1100, 1241, 1280, 1436, 1440, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(400)
            bar = page.evaluate(BAR)
            assert bar["tools"] and bar["wide"] <= 0, (width, classroom, bar)
            first = min(left for left, _ in bar["tools"])
            assert all(right <= first for _, right in bar["menus"]), (width, classroom, bar)
            assert not (width >= 1000 and bar["folded"]), (width, classroom, bar)
    page.set_viewport_size({"width": 1440, "height": 900})


def test_the_answer_stands_above_the_figure_in_the_first_quarter(page, app: str) -> None:
    page.goto(f"{app}/causes?n_tasks=60")
    box = eventually(page, lambda: page.locator(".st-key-fsviz_answer p").bounding_box() or False)
    assert box["y"] > 100 and box["y"] + box["height"] < 260, box


def test_a_dimmed_entry_says_why_and_the_search_opens_a_page(page, app: str) -> None:
    page.goto(f"{app}/classes?dataset=dtd")
    settle(page)
    page.get_by_test_id("stTopNavSection").filter(has_text="Why hard?").click()
    entry = page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Causes · no features")
    entry.hover()
    expect(page.get_by_text(re.compile("^Needs features: .* has none")).locator("visible=true").first).to_be_visible()
    page.keyboard.press("Escape")
    box = page.locator(".st-key-find_question input")
    box.click()
    box.fill("leaderboard")
    page.get_by_role("option").first.click()
    page.locator("h1", has_text=PAGES["evaluate"].question).wait_for()
    page.wait_for_url(re.compile("evaluate.*dataset=dtd"))
