"""The Gallery in a real browser: speed, clicks, keys, filters in the link, datasets without pixels."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import expect

from fsviz import datasets
from tests.browser.conftest import eventually, settle

LOADED = """() => {
    const walls = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
    const images = walls.flatMap((root) => [...root.querySelectorAll('.tile img')]);
    return images.filter((image) => image.naturalWidth > 0).length;
}"""


def open_gallery(page, app: str, link: str = "") -> None:
    page.goto(f"{app}/Gallery{link}")
    settle(page)
    page.locator(".tile").first.wait_for()


def expect_detail(page, name: str) -> None:
    """The class of the image that is told about."""
    expect(page.locator("h3").first).to_have_text(name, use_inner_text=True)


def badges(page) -> list[float]:
    return [float(b) for b in page.locator(".wall").first.locator(".badge").all_inner_texts()]


def test_a_hundred_thumbnails_show_and_the_next_hundred_follow(page, app: str) -> None:
    open_gallery(page, app)
    page.wait_for_function(f"({LOADED})() >= 100")
    page.get_by_role("button", name="Page 3", exact=True).click()
    page.get_by_text("Images 201 to 300").wait_for()
    page.get_by_role("button", name="Page 4", exact=True).click()
    page.get_by_text("Images 301 to 400").wait_for()
    page.wait_for_function(f"({LOADED})() >= 100")
    expect(page).to_have_url(re.compile("page=4"))


def test_a_click_tells_about_the_image_and_a_second_click_takes_it_back(page, app: str) -> None:
    open_gallery(page, app)
    first = page.locator("h3").first.inner_text()
    tiles = page.locator(".wall").first.locator(".tile")
    captions = [tiles.nth(i).locator(".caption").inner_text() for i in range(20)]
    other = next(i for i, caption in enumerate(captions) if caption != first)
    tiles.nth(other).click()
    expect_detail(page, captions[other])
    expect(tiles.nth(other)).to_have_attribute("aria-pressed", "true")
    page.get_by_text("Its place among meanings").first.wait_for()
    page.get_by_text("Its nearest neighbours in feature space").first.wait_for()
    settle(page)
    tiles.nth(other).click()
    expect_detail(page, first)


def test_the_wall_works_by_keyboard(page, app: str) -> None:
    open_gallery(page, app)
    tiles = page.locator(".wall").first.locator(".tile")
    third = tiles.nth(2).locator(".caption").inner_text()
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    expect_detail(page, third)
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "true")


def test_filters_live_in_the_link_and_nonsense_is_dropped(page, app: str) -> None:
    open_gallery(page, app, "?classes=dog&classes=nonsense&contexts=grass&order=blur&page=77")
    captions = page.locator(".wall").first.locator(".caption")
    eventually(page, lambda: set(captions.all_inner_texts()) == {"dog"})
    eventually(page, lambda: badges(page) == sorted(badges(page)) != [])
    open_gallery(page, app, "?classes=dog&view=Classes")
    page.locator(".row").first.wait_for()
    expect(page.locator(".row .title")).to_have_text(["dog"])


def test_the_link_brings_back_the_image_and_the_range(page, app: str) -> None:
    open_gallery(page, app)
    page.locator(".wall").first.locator(".tile").nth(9).click()
    page.wait_for_url("**image=**")
    image = page.locator(".wall").first.locator(".tile").nth(9).get_attribute("data-id")
    expect(page).to_have_url(re.compile(f"image={image}(&|$)"))
    open_gallery(page, app, f"?image={image}&by=brightness&order=brightness&with_brightness=0.9&with_brightness=1.0")
    page.get_by_text("Its place among meanings").first.wait_for()
    told = page.locator('[data-testid="stHtml"]').filter(has_text="brightness").first
    eventually(page, lambda: f"image\n{image}" in told.inner_text())
    eventually(page, lambda: min(badges(page)) >= 0.9 and max(badges(page)) <= 1.0)
    open_gallery(page, app, "?image=99999999")
    page.get_by_text("The first image shown").first.wait_for()


def test_filters_that_leave_nothing_say_so(page, app: str) -> None:
    demo = datasets.load("demo")
    seen = demo.contexts.pivot_table(index="class_id", columns="context", values="n_images", fill_value=0)
    class_id, context = next((c, k) for c in seen.index for k in seen.columns if seen.loc[c, k] == 0)
    name = demo.classes["class_name"].iat[class_id]
    page.goto(f"{app}/Gallery?classes={quote(name)}&contexts={quote(context)}")
    settle(page)
    page.get_by_text("No image passes all of these filters").wait_for()


def test_a_dataset_without_pixels_lists_its_classes_and_says_what_to_do(page, app: str) -> None:
    page.goto(f"{app}/Gallery?dataset=tiered_imagenet")
    settle(page)
    page.get_by_text("has no pixels here").wait_for()
    page.get_by_text("python -m fsviz add tiered_imagenet ~/imagenet/train").wait_for()
    page.get_by_text("Its place among meanings").first.wait_for()


def test_digits_are_shown(page, app: str) -> None:
    open_gallery(page, app, "?dataset=digits")
    page.wait_for_function(f"({LOADED})() >= 100")


def test_back_goes_back_and_the_panel_starts_at_its_top(page, app: str) -> None:
    open_gallery(page, app)
    tiles = page.locator(".wall").first.locator(".tile")
    first = tiles.nth(9).get_attribute("data-id")
    tiles.nth(9).click()
    expect(page).to_have_url(re.compile(f"image={first}(&|$)"))
    page.get_by_text("Its nearest neighbours in feature space").first.wait_for()
    settle(page)
    panel = page.locator('[data-testid="stColumn"]:has(.st-key-gallery_detail)')
    neighbour = panel.locator(".wall").first.locator(".tile").first
    other = neighbour.get_attribute("data-id")
    neighbour.scroll_into_view_if_needed()
    panel.evaluate("column => { column.scrollTop = 400; }")
    neighbour.evaluate("tile => tile.click()")
    expect(page).to_have_url(re.compile(f"image={other}(&|$)"))
    told = page.locator('[data-testid="stHtml"]').filter(has_text="image")
    eventually(page, lambda: any(f"image\n{other}" in text for text in told.all_inner_texts()))
    eventually(page, lambda: panel.evaluate("column => column.scrollTop") == 0)
    page.go_back()
    expect(page).to_have_url(re.compile(f"image={first}(&|$)"))
    eventually(page, lambda: any(f"image\n{first}" in text for text in told.all_inner_texts()))
    expect(page.locator('[data-testid="stToast"]')).to_have_count(0)
