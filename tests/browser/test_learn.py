"""The page Learn in a browser: a click is one step of its history, and a reload keeps what was done."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle

LINKS = '[data-testid="stMain"] [data-testid="stPageLink"] a:not([href*="learn"]):visible'  # to other pages


@pytest.mark.parametrize("place", [1, 2, 6])
def test_one_press_leads_back_from_where_a_lesson_leads(page, app: str, place: int) -> None:
    page.goto(f"{app}/learn?lesson={place}")
    settle(page)
    here, n_links = page.url, page.locator(LINKS).count()
    assert n_links
    for at in range(n_links):
        page.locator(LINKS).nth(at).click()
        page.wait_for_url(re.compile(r"^(?!.*/learn)"))
        settle(page)
        page.go_back()
        page.wait_for_url(re.compile("/learn"))
        settle(page)
        expect(page).to_have_url(here)
        expect(page.get_by_text("Question:")).to_be_visible()


def test_every_step_of_a_lesson_is_one_step_back_and_a_reload_keeps_all(page, app: str) -> None:
    page.goto(f"{app}/learn")
    settle(page)
    steps = page.evaluate("history.length")
    answer = page.locator(".st-key-answer_1_0 button")
    expect(answer).to_be_disabled()
    page.get_by_role("slider").press("End")
    page.wait_for_url(re.compile(r"control=1\.5.*progress=1\.0-5|progress=1\.0-5.*control=1\.5"))
    expect(answer).to_be_enabled()
    answer.click()
    page.wait_for_url(re.compile(r"progress=1\.0-5\.0"))
    page.get_by_role("button", name="Next", exact=True).click()
    page.wait_for_url(re.compile("lesson=2"))
    settle(page)
    assert page.evaluate("history.length") == steps + 3 and "control" not in page.url
    page.reload()
    settle(page)
    expect(page.get_by_text("1 of 6 lessons answered")).to_be_visible()
    page.get_by_role("button", name="Previous", exact=True).click()
    expect(answer).to_be_disabled()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
