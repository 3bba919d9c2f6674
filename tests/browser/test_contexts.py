"""The page of contexts in a real browser, on the demo as it ships."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import settle


def test_a_click_on_a_cell_shows_its_images_and_is_in_the_link(page, app: str) -> None:
    page.goto(f"{app}/Contexts?find=owl")
    settle(page)
    page.wait_for_selector("h3:has-text('shrimp · underwater')")  # the strongest, until one is chosen
    cells = page.locator(".js-plotly-plot .scatterlayer .point")
    cells.nth(8).click(force=True)  # the contexts by size: the ninth is night
    page.wait_for_selector("h3:has-text('owl · night')")
    expect(page.locator(".tile img")).to_have_count(17)
    page.wait_for_function("() => location.search.includes('concept=owl') && location.search.includes('context=night')")


def test_the_dial_answers_the_same_queries_with_another_support(page, app: str) -> None:
    page.goto(f"{app}/Contexts?show=What+another+context+costs&n_tasks=50&methods=protonet&shift=0.5")
    settle(page)
    page.wait_for_selector(".row.query .tile img")
    told = page.locator("text=/Over 50 tasks ProtoNet falls from .* at this shift/")
    told.wait_for()
    before = told.inner_text()
    page.get_by_role("slider", name="Shift of contexts").press("End")
    page.wait_for_function("before => !document.body.innerText.includes(before)", arg=before)
    told.wait_for()
    ends = [float(text.split(" % at this")[0].rsplit(" ", 1)[1]) for text in (before, told.inner_text())]
    assert ends[1] < ends[0]


def test_sums_lead_to_profiles_and_points_show_their_pictures(page, app: str) -> None:
    page.goto(f"{app}/Contexts?find=owl")
    settle(page)
    page.wait_for_selector("h3:has-text('shrimp · underwater')")
    cells = page.locator(".js-plotly-plot .scatterlayer .point")
    cells.nth(14).click(force=True)  # after the cells of the one row its sum
    page.wait_for_selector("text=/48 images in .* contexts, .* bits from/")
    cells.nth(15).click(force=True)  # and then those of the columns
    page.wait_for_selector("text=/images in .* concepts, .* bits from/")
    page.goto(f"{app}/Contexts?show=Images+and+words")
    settle(page)
    point = page.locator(".st-key-similarity .scatterlayer .trace").nth(1).locator(".point").first
    point.wait_for()
    point.scroll_into_view_if_needed()
    settle(page)
    point.hover(force=True)
    page.wait_for_selector(".beside img")
    page.mouse.move(5, 5)
    page.locator(".beside").wait_for(state="hidden")
