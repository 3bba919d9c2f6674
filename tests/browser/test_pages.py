"""Every page opens by a cold deep link: with the demo, with datasets that lack things, with nonsense in the link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, eventually, settle, still

PAGES = ["/", *(f"/{re.sub(r'^[0-9]+_', '', Path(p).stem)}" for p in sorted((ROOT / "pages").glob("*.py")))]


def expect_a_question(tab) -> None:
    expect(tab.locator("h1").first).to_have_text(re.compile(r"\?\s*$"), use_inner_text=True)


@pytest.mark.parametrize("path", PAGES)
def test_a_cold_deep_link_opens(page, app: str, path: str) -> None:
    page.goto(f"{app}{path}?dataset=demo")
    settle(page)
    expect_a_question(page)
    eventually(page, lambda: len(page.locator('[data-testid="stMainBlockContainer"]').inner_text()) > 200)
    assert page.locator('[data-testid="stException"]').count() == 0


@pytest.mark.parametrize("path", ["/", "/Tasks", "/Hard_tasks"])
def test_nonsense_in_the_link_is_one_sentence_and_the_page_stays_up(page, app: str, path: str) -> None:
    page.goto(f"{app}{path}?dataset=tierd_imagenet&n_way=many&%3Cb%3E=1")
    settle(page)
    page.get_by_text("There is no dataset named 'tierd_imagenet'. Did you mean 'tiered_imagenet'").wait_for()
    expect_a_question(page)


def test_the_dataset_stays_on_the_way_through_the_pages(page, app: str) -> None:
    page.goto(f"{app}/?dataset=mini_imagenet")
    settle(page)
    page.locator('[data-testid="stSidebar"]').get_by_role("link", name="Taxonomy").click()
    page.wait_for_url("**/Taxonomy**")
    expect(page).to_have_url(re.compile("dataset=mini_imagenet"))
    settle(page)
    page.get_by_text("miniImageNet").first.wait_for()


def test_picking_a_dataset_changes_the_page_and_the_link(page, app: str) -> None:
    page.goto(app)
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


def test_the_overview_shows_images_and_leads_to_every_page(page, app: str) -> None:
    page.goto(app)
    settle(page)
    page.get_by_text("not photographs").first.wait_for()
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length >= 2")
    main = page.locator('[data-testid="stMainBlockContainer"]')
    for path in PAGES[1:]:
        expect(main.locator(f'a[href*="{path.strip("/")}"]').first).to_be_attached()


def test_the_tree_map_opens_a_group_by_click(page, app: str) -> None:
    page.goto(f"{app}/?dataset=mini_imagenet")
    settle(page)
    group = page.locator(".treemaplayer .slicetext", has_text="artifact").first
    group.scroll_into_view_if_needed()
    still(page.locator(".js-plotly-plot", has=group))
    n_before = page.locator(".treemaplayer .slice").count()
    box = group.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function(f"() => document.querySelectorAll('.treemaplayer .slice').length < {n_before}")


def test_a_page_that_lacks_features_leads_to_them_or_to_the_demo(page, app: str) -> None:
    page.goto(f"{app}/Hard_tasks?dataset=digits")
    settle(page)
    page.get_by_text("python -m fsviz extract digits --backbone efficientnet_lite0").wait_for()
    settle(page)
    page.locator('[data-testid="stMainBlockContainer"]').get_by_role("link", name="Extract features").click()
    page.wait_for_url("**/Add_images?**dataset=digits**")
    page.get_by_text("Handwritten digits").first.wait_for()
    page.goto(f"{app}/Evaluate?dataset=dtd")
    page.get_by_role("button", name="Show the demo instead").click()
    page.get_by_text("Most accurate").first.wait_for()


def test_a_click_on_a_sample_image_leads_to_it_in_the_gallery(page, app: str) -> None:
    page.goto(f"{app}/Gallery")  # been there before
    settle(page)
    page.goto(app)
    settle(page)
    page.get_by_role("button", name="tiger").first.click()
    page.get_by_role("link", name="All about this tiger").click()
    page.wait_for_url("**/Gallery?**image=**")
    page.locator("h3", has_text="tiger").first.wait_for()


def test_markdown_in_a_link_is_shown_as_text_and_fetches_nothing(page, app: str) -> None:
    page.goto(f"{app}/Tasks?dataset=![x](http://127.0.0.2/x.png)&![y](http://127.0.0.2/y.png)=1")
    settle(page)
    page.get_by_text("There is no dataset named '![x](http://127.0.0.2/x.png)'").wait_for()
