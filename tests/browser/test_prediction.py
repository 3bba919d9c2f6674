"""The page of predicted accuracy in a real browser, on the demo as it ships."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import settle, still


def open_page(page, app: str, query: str = "") -> None:
    page.goto(f"{app}/predict_accuracy{query}")
    settle(page)
    page.wait_for_selector("text=Best measure")
    page.wait_for_selector(".js-plotly-plot .scatterlayer .point")


def test_the_demo_opens_with_its_scatter_and_a_point_leads_to_its_task(page, app: str) -> None:
    open_page(page, app, "?n_tasks=100")
    page.wait_for_selector("text=Prediction uncertainty")
    answer = page.locator(".st-key-fsviz_answer")
    expect(answer).to_contain_text(re.compile(r"Predicted accuracy is off by \d+\.\d ± \d+\.\d points"))
    figure = page.locator(".js-plotly-plot").first.bounding_box()
    assert answer.bounding_box()["y"] < 230 and figure["y"] < 300
    assert figure["y"] + figure["height"] < page.viewport_size["height"] - 200  # the task begins inside the window
    first = page.locator("h3", has_text=re.compile(r"Task \d+: \d+% accuracy"))
    first.wait_for()
    before = first.inner_text()
    page.wait_for_selector(".row.support .tile img")
    expect(page.locator(".row.support")).to_have_count(5)
    expect(page.locator(".row.query")).to_have_count(5)
    expect(page.locator(".row.query .tile.wrong").first).to_be_attached()
    settle(page)
    still(page.locator(".js-plotly-plot").first)
    page.locator(".js-plotly-plot .scatterlayer .trace").first.locator(".point").nth(7).click(force=True)
    expect(first).not_to_have_text(before, use_inner_text=True)
    number = re.search(r"\d+", first.inner_text())[0]
    page.wait_for_selector(f".js-plotly-plot text:has-text('task {number}')")  # it is marked in the scatter
