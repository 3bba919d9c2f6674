"""The Gallery in a real browser: clicks, keys, filters in the link, the way back."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle

LOADED = """() => {
    const walls = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
    const images = walls.flatMap((root) => [...root.querySelectorAll('.tile img')]);
    return images.filter((image) => image.naturalWidth > 0).length;
}"""


def open_gallery(page, app: str, link: str = "") -> None:
    page.goto(f"{app}/images{link}")
    settle(page)
    page.locator(".tile").first.wait_for()


def expect_detail(page, name: str) -> None:
    """Waits until the detail of the gallery has the name of this class."""
    expect(page.locator(".st-key-gallery_detail h4").first).to_have_text(name, use_inner_text=True)


def badges(page) -> list[float]:
    return [float(b) for b in page.locator(".wall").first.locator(".badge").all_inner_texts()]


def test_a_hundred_thumbnails_answer_clicks_and_keys_and_the_next_hundred_follow(page, app: str) -> None:
    open_gallery(page, app)
    page.wait_for_function(f"({LOADED})() >= 100")
    first = page.locator(".st-key-gallery_detail h4").first.inner_text()
    tiles = page.locator(".wall").first.locator(".tile")
    captions = [tiles.nth(i).locator(".caption").inner_text() for i in range(20)]
    clicked = next(i for i, caption in enumerate(captions) if caption != first)
    tiles.nth(clicked).click()
    expect_detail(page, captions[clicked])
    expect(tiles.nth(clicked)).to_have_attribute("aria-pressed", "true")
    page.get_by_text("Taxonomy", exact=True).last.wait_for()
    page.get_by_text("Nearest neighbours").first.wait_for()
    settle(page)
    tiles.nth(clicked).click()  # a second click takes it back
    expect_detail(page, first)
    settle(page)

    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    expect_detail(page, captions[2])
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "true")
    settle(page)

    page.get_by_role("button", name="Page 3", exact=True).first.click()
    page.get_by_text("201 to 300 of").wait_for()
    page.get_by_role("button", name="Page 4", exact=True).last.click()  # those below the wall
    page.get_by_text("301 to 400 of").wait_for()
    page.wait_for_function(f"({LOADED})() >= 100")
    expect(page).to_have_url(re.compile("page=4"))


def test_filters_live_in_the_link_and_nonsense_is_dropped(page, app: str) -> None:
    open_gallery(page, app, "?classes=dog&classes=nonsense&contexts=grass&order=blur&page=77")
    captions = page.locator(".wall").first.locator(".caption")
    eventually(page, lambda: set(captions.all_inner_texts()) == {"dog"})
    eventually(page, lambda: badges(page) == sorted(badges(page)) != [])
    open_gallery(page, app, "?classes=dog&view=Classes")
    page.locator(".row").first.wait_for()
    expect(page.locator(".row .title")).to_have_text(["dog"])


def test_back_goes_back_the_panel_starts_at_its_top_and_a_link_brings_back_image_and_range(page, app: str) -> None:
    open_gallery(page, app)
    tiles = page.locator(".wall").first.locator(".tile")
    first = tiles.nth(9).get_attribute("data-id")
    tiles.nth(9).click()
    expect(page).to_have_url(re.compile(f"image={first}(&|$)"))
    page.get_by_text("Nearest neighbours").first.wait_for()
    settle(page)
    panel = page.locator('[data-testid="stColumn"]:has(.st-key-gallery_detail)')
    neighbour = panel.locator(".wall").first.locator(".tile").first
    neighbour_id = neighbour.get_attribute("data-id")
    neighbour.scroll_into_view_if_needed()
    panel.evaluate("column => { column.scrollTop = 400; }")
    neighbour.evaluate("tile => tile.click()")
    expect(page).to_have_url(re.compile(f"image={neighbour_id}(&|$)"))
    details = page.locator('[data-testid="stHtml"]').filter(has_text="image")
    eventually(page, lambda: any(f"image\n{neighbour_id}" in text for text in details.all_inner_texts()))
    eventually(page, lambda: panel.evaluate("column => column.scrollTop") == 0)
    page.go_back()
    expect(page).to_have_url(re.compile(f"image={first}(&|$)"))
    eventually(page, lambda: any(f"image\n{first}" in text for text in details.all_inner_texts()))
    expect(page.locator('[data-testid="stToast"]')).to_have_count(0)

    open_gallery(page, app, f"?image={first}&by=brightness&order=brightness&with_brightness=0.9&with_brightness=1.0")
    page.get_by_text("Taxonomy", exact=True).last.wait_for()
    eventually(page, lambda: any(f"image\n{first}" in text for text in details.all_inner_texts()))
    eventually(page, lambda: min(badges(page)) >= 0.9 and max(badges(page)) <= 1.0)


def test_selected_images_stay_marked_and_lead_to_a_task(page, app: str) -> None:
    open_gallery(page, app, "?view=Classes")
    page.get_by_text("Select images", exact=True).click()
    page.get_by_text("Click images to select them.").wait_for()
    settle(page)
    ids = []
    for number in (0, 1):
        tile = page.locator(".row").nth(number).locator(".tile").nth(2)
        ids.append(tile.get_attribute("data-id"))
        tile.click()
        expect(page).to_have_url(re.compile("selected=" + r"\.".join(ids) + "(&|$)"))
        settle(page)
        expect(page.locator(".row").nth(number).locator(".tile").nth(2)).to_have_attribute("aria-pressed", "true")
    link = page.get_by_role("link", name="Create a task from these")
    assert link.bounding_box()["y"] < 900, "the answer to a click is inside the window"
    page.locator(".row").nth(0).locator(".tile").nth(2).click()
    expect(page).to_have_url(re.compile(f"selected={ids[1]}(&|$)"))
    settle(page)
    page.locator(".row").nth(0).locator(".tile").nth(2).click()
    link.click()
    page.wait_for_url(re.compile(r"edit_task\?.*support="))


def test_digits_are_shown(page, app: str) -> None:
    open_gallery(page, app, "?dataset=digits")
    page.wait_for_function(f"({LOADED})() >= 100")
