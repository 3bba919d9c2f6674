"""The first screen in a browser: cards that are links, the link that is copied, cells that can be clicked."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle


def test_picking_a_dataset_changes_page_and_link_and_a_card_is_a_link_as_a_whole(page, app: str) -> None:
    page.goto(f"{app}/?classroom=true")
    page.locator(".frame img").first.wait_for()
    settle(page)
    picker = page.locator('[data-testid="stSidebar"] [data-testid="stSelectbox"] input').first
    picker.click()
    picker.fill("Omniglot")
    expect(page.get_by_role("option")).to_have_text([re.compile("Omniglot")])  # the list has followed the letters
    page.keyboard.press("Enter")
    page.wait_for_url("**dataset=omniglot**")
    settle(page)
    page.get_by_text("1,623").first.wait_for()
    page.get_by_text("50 alphabets").first.wait_for()
    card = page.locator(".st-key-card_learn")
    card.scroll_into_view_if_needed()
    box = card.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 12, box["y"] + box["height"] - 12)  # far from the words
    page.wait_for_url("**/learn?**")
    expect(page).to_have_url(re.compile("classroom=true"))


def test_the_link_is_copied_or_shown_to_copy(page, app: str) -> None:
    page.goto(f"{app}/classes?dataset=cifar100&split=train")
    settle(page)
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as on plain http
    page.evaluate("() => { document.execCommand = () => false; }")
    page.get_by_role("button", name="Copy link").click()
    link_field = page.get_by_role("textbox", name="Link of this page")
    expect(link_field).to_be_visible()
    assert link_field.input_value() == page.url and "split=train" in page.url
    page.evaluate("() => { document.execCommand = () => true; }")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    expect(link_field).to_be_hidden()


def test_a_cell_of_the_heat_map_leads_to_its_two_classes_and_a_task_of_them(page, app: str) -> None:
    page.goto(f"{app}/confusion?split=val&likeness=cosine&show=Heat+map")
    settle(page)
    chart = page.locator(".st-key-likeness_map .nsewdrag").first
    chart.scroll_into_view_if_needed()
    box = eventually(page, chart.bounding_box)
    page.mouse.click(box["x"] + box["width"] * 0.5 + 3, box["y"] + box["height"] * 0.21)
    page.wait_for_url(re.compile("classes="))
    page.get_by_text("Selected pair").first.wait_for()
    page.get_by_text("Create a task from these classes").first.click()
    page.wait_for_url(re.compile(r"edit_task\?.*task_of=[^&]+%2C"))
    settle(page)
    expect(page.get_by_text(re.compile(r"\d+ of \d+ queries correct"))).to_be_visible()
    expect(page).to_have_url(re.compile(r"task_of=[^&]+%2C"))  # pages that keep classes in their link take nothing away
    before = page.url
    page.locator(".st-key-swap_wall .tile").first.click()
    page.wait_for_url(re.compile("swap="))
    expect(page.get_by_text("now correct")).to_be_visible()
    expect(page.locator(".st-key-fsviz_answer .tile img")).to_have_count(
        2
    )  # the image that was removed, and the new one
    page.locator(".st-key-built_name").scroll_into_view_if_needed()
    expect(page.get_by_text("now correct")).to_be_in_viewport()  # pinned
    page.go_back()  # a swap is one step, and its click is not followed once more
    expect(page.get_by_text("now correct")).to_be_hidden()
    settle(page)
    expect(page).to_have_url(before)
