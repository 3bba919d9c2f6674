"""The page of contexts in a real browser, on the demo as it ships."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import eventually, insist, settle, still


def click_a_cell(page, nth: int) -> None:
    settle(page)
    still(page.locator(".js-plotly-plot").first)
    page.locator(".js-plotly-plot").first.locator(".scatterlayer .point").nth(nth).click(force=True)


def test_cells_show_their_images_and_are_in_the_link_and_sums_lead_to_profiles(page, app: str) -> None:
    page.goto(f"{app}/contexts?show=Class–context+table&find=owl")
    settle(page)
    page.wait_for_selector("h3:has-text('shrimp · underwater')")  # the strongest, until one is chosen
    click_a_cell(page, 8)  # the contexts by size: the ninth is night
    page.wait_for_selector("h3:has-text('owl · night')")
    expect(page.locator(".tile img")).to_have_count(17)
    box = page.locator("h3:has-text('owl · night')").bounding_box()
    assert box["y"] < 850 and box["x"] > 700  # next to the table
    page.wait_for_function("() => location.search.includes('concept=owl') && location.search.includes('context=night')")
    click_a_cell(page, 14)  # after the cells of the one row its sum
    page.wait_for_selector("text=/48 images in .* contexts, association .* bits/")
    click_a_cell(page, 15)  # and then those of the columns
    page.wait_for_selector("text=/images in .* classes, association .* bits/")


def test_the_dial_answers_the_same_queries_with_another_support(page, app: str) -> None:
    page.goto(f"{app}/contexts?show=Cost+of+a+context+change&n_tasks=50&methods=protonet&shift=0.5")
    settle(page)
    page.wait_for_selector(".row.query .tile img")
    page.get_by_text("50% of the support in other contexts").wait_for()
    images = page.locator(".row.support .tile img")
    before = [image.get_attribute("src") for image in images.all()]
    page.get_by_role("slider", name="Context shift").press("End")
    page.get_by_text("Support in other contexts").wait_for()
    eventually(page, lambda: [image.get_attribute("src") for image in images.all()] != before)


def test_a_click_on_a_method_answers_above_and_beside_it(page, app: str) -> None:
    page.goto(f"{app}/contexts?n_tasks=30&methods=protonet,ridge")
    settle(page)
    answer = page.locator(".st-key-fsviz_answer")
    expect(answer).to_contain_text("ProtoNet loses")
    chart = page.locator(".st-key-shifted .js-plotly-plot")
    still(chart)
    chart.locator(".scatterlayer .trace").nth(1).locator(".point").nth(0).click(force=True)
    expect(answer).to_contain_text("Ridge regression (R2D2) loses")
    page.wait_for_function("() => location.search.includes('looked=ridge')")
    assert page.get_by_text("Support in the same contexts").bounding_box()["y"] < 900


def test_points_show_their_pictures(page, app: str) -> None:
    page.goto(f"{app}/contexts?show=Image–text+similarity")
    settle(page)
    point = page.locator(".st-key-similarity .scatterlayer .trace").nth(1).locator(".point").first
    point.wait_for()
    point.scroll_into_view_if_needed()
    settle(page)
    still(page.locator(".st-key-similarity .js-plotly-plot"))

    def point_at() -> None:
        page.mouse.move(5, 5)
        point.hover(force=True)

    insist(point_at, page.locator(".hover-images img").first)
    page.mouse.move(5, 5)
    page.locator(".hover-images").wait_for(state="hidden")
