"""The Gallery in a real browser: speed, clicks, keys, filters in the link, datasets without pixels."""

from __future__ import annotations

from urllib.parse import quote

from fsviz import datasets
from tests.browser.conftest import settle

LOADED = """() => {
    const walls = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
    const images = walls.flatMap((root) => [...root.querySelectorAll('.tile img')]);
    return images.filter((image) => image.naturalWidth > 0).length;
}"""


def open_gallery(page, app: str, link: str = "") -> None:
    page.goto(f"{app}/Gallery{link}")
    settle(page)
    page.locator(".tile").first.wait_for()


def detail(page) -> str:
    """The class of the image that is told about."""
    return page.locator("h3").first.inner_text()


def test_a_hundred_thumbnails_show_and_the_next_hundred_follow(page, app: str) -> None:
    open_gallery(page, app)
    page.wait_for_function(f"({LOADED})() >= 100")
    page.get_by_role("button", name="Page 3", exact=True).click()
    page.get_by_text("Images 201 to 300").wait_for()
    page.get_by_role("button", name="Page 4", exact=True).click()
    page.get_by_text("Images 301 to 400").wait_for()
    page.wait_for_function(f"({LOADED})() >= 100")
    assert "page=4" in page.url


def test_a_click_tells_about_the_image_and_a_second_click_takes_it_back(page, app: str) -> None:
    open_gallery(page, app)
    first = detail(page)
    tiles = page.locator(".wall").first.locator(".tile")
    captions = [tiles.nth(i).locator(".caption").inner_text() for i in range(20)]
    other = next(i for i, caption in enumerate(captions) if caption != first)
    tiles.nth(other).click()
    page.wait_for_function("(text) => document.querySelector('h3').innerText === text", arg=captions[other])
    assert tiles.nth(other).get_attribute("aria-pressed") == "true"
    page.get_by_text("Its place among meanings").first.wait_for()
    page.get_by_text("Its nearest neighbours in feature space").first.wait_for()
    tiles.nth(other).click()
    page.wait_for_function("(text) => document.querySelector('h3').innerText === text", arg=first)


def test_the_wall_works_by_keyboard(page, app: str) -> None:
    open_gallery(page, app)
    tiles = page.locator(".wall").first.locator(".tile")
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "(text) => document.querySelector('h3').innerText === text", arg=tiles.nth(2).locator(".caption").inner_text()
    )
    assert tiles.nth(2).get_attribute("aria-pressed") == "true"


def test_filters_live_in_the_link_and_nonsense_is_dropped(page, app: str) -> None:
    open_gallery(page, app, "?classes=dog&classes=nonsense&contexts=grass&order=blur&page=77")
    captions = set(page.locator(".wall").first.locator(".caption").all_inner_texts())
    assert captions == {"dog"}
    badges = [float(b) for b in page.locator(".wall").first.locator(".badge").all_inner_texts()]
    assert badges == sorted(badges) and badges
    open_gallery(page, app, "?classes=dog&view=Classes")
    page.locator(".row").first.wait_for()
    assert page.locator(".row .title").all_inner_texts() == ["dog"]


def test_the_link_brings_back_the_image_and_the_range(page, app: str) -> None:
    open_gallery(page, app)
    page.locator(".wall").first.locator(".tile").nth(9).click()
    page.wait_for_url("**image=**")
    image = page.locator(".wall").first.locator(".tile").nth(9).get_attribute("data-id")
    assert f"image={image}" in page.url
    open_gallery(page, app, f"?image={image}&by=brightness&order=brightness&with_brightness=0.9&with_brightness=1.0")
    page.get_by_text("Its place among meanings").first.wait_for()
    assert f"image\n{image}" in page.locator('[data-testid="stHtml"]').filter(has_text="brightness").first.inner_text()
    badges = [float(b) for b in page.locator(".wall").first.locator(".badge").all_inner_texts()]
    assert badges and min(badges) >= 0.9 and max(badges) <= 1.0
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
    page.get_by_text("python -m fsviz add my_tiered_imagenet PATH").wait_for()
    page.get_by_text("Its place among meanings").first.wait_for()


def test_digits_are_shown(page, app: str) -> None:
    open_gallery(page, app, "?dataset=digits")
    page.wait_for_function(f"({LOADED})() >= 100")
