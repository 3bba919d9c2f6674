"""A task leads to its passport and back to where the page was left; its link opens it in a fresh session."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle

SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"


def pictures_on(tab) -> list[str]:
    wall = tab.locator(".st-key-passport_wall_0 img")
    expect(wall).to_have_count(4 * 12)
    return wall.evaluate_all("images => images.map((image) => image.src)")


def test_a_task_leads_to_its_passport_and_back_and_its_link_opens_anywhere(page, browser, app: str) -> None:
    page.goto(f"{app}/sample_tasks?n_tasks=50&n_way=4&n_shot=2&seed=3")
    settle(page)
    lead = page.get_by_role("link", name="Full task profile")
    lead.scroll_into_view_if_needed()
    tasks, place = page.url, page.evaluate(SCROLLED)
    assert place > 0
    lead.click()
    page.wait_for_url(re.compile(r"/task\?.*task_name=drawn~demo~"))
    expect(page.get_by_text(re.compile(r"Task \d+ of Semantic 4-way 2-shot, 50 tasks"))).to_be_visible()
    settle(page)
    shared, pictures = page.url, pictures_on(page)
    assert page.evaluate(SCROLLED) == 0

    second_tab = browser.new_page()  # a session of its own, which knows nothing but the address
    second_tab.goto(shared)
    expect(second_tab.get_by_text(re.compile(r"Task \d+ of Semantic 4-way 2-shot, 50 tasks"))).to_be_visible()
    settle(second_tab)
    assert second_tab.url == shared and pictures_on(second_tab) == pictures
    second_tab.close()

    page.go_back()
    page.wait_for_url(tasks)
    eventually(page, lambda: page.evaluate(SCROLLED) == place)
