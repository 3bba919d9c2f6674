"""Overview and Causes in a browser: the first screen, and clicks that are answered next to the figure."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle


def test_the_first_screen_of_overview_has_answer_tasks_causes_and_three_ways_to_start(page, app: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app}/")
    page.locator(".st-key-card_learn").wait_for()
    expect(page.locator(".st-key-fsviz_answer")).to_contain_text("Main difference: ")
    settle(page)
    answer, card = (page.locator(key).bounding_box() for key in (".st-key-fsviz_answer", ".st-key-card_learn"))
    assert answer["y"] + answer["height"] < 230 and card["y"] + card["height"] <= 900
    assert [page.locator(f".st-key-card_{slug}").count() for slug in ("switch", "add_images", "learn")] == [1, 1, 1]
    page.set_viewport_size({"width": 1000, "height": 900})
    hard, easy = (page.get_by_text(re.compile(f"^{name} task: ")).bounding_box() for name in ("Hard", "Easy"))
    assert hard["y"] == easy["y"] and easy["x"] > hard["x"] + 200


def test_one_click_switches_between_drawings_and_photographs(page, app: str) -> None:
    page.goto(f"{app}/")
    page.get_by_role("button", name="Switch to photographs").click()
    page.wait_for_url("**dataset=fruit**")
    page.get_by_text("784 smartphone photographs of 14 kinds of fruit").wait_for()
    settle(page)
    page.get_by_role("button", name="Switch to drawings").click()
    page.get_by_text("emoji art composed on drawn").first.wait_for()


def test_a_leaf_of_the_class_map_shows_images_of_its_class_beside_the_map(page, app: str) -> None:
    page.goto(f"{app}/")
    page.get_by_text("Images of different classes").wait_for()
    settle(page)
    leaf = page.locator(".st-key-hierarchy text").filter(has_text=re.compile("^koala$")).first
    leaf.scroll_into_view_if_needed()
    box = eventually(page, leaf.bounding_box)
    page.mouse.click(box["x"] + 4, box["y"] + 4)
    page.wait_for_url(re.compile("box="))
    expect(page.get_by_text("koala: split train")).to_be_in_viewport()
    expect(page.locator('[class*="st-key-overview_sample_n"] .tile')).to_have_count(20)


def test_clicks_on_a_bar_and_on_a_point_of_causes_are_answered_in_the_window(page, app: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app}/causes?n_tasks=60")
    page.locator(".st-key-cause_tasks .js-plotly-plot").wait_for()
    settle(page)
    figure = page.locator(".st-key-cause_shares .js-plotly-plot").bounding_box()
    answer = page.locator(".st-key-fsviz_answer").bounding_box()
    assert answer["y"] < 230 and figure["y"] < 300
    bar = page.locator(".st-key-cause_shares .scatterlayer .point").first.bounding_box()  # a diamond stands for its bar
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_url(re.compile("measure="))
    settle(page)
    point = page.locator(".st-key-cause_tasks .scatterlayer .point").nth(5).bounding_box()
    page.mouse.move(point["x"] + 4, point["y"] + 4)
    expect(page.locator(".hover-images:visible img")).to_have_count(1)  # a strip with an image of every class
    page.mouse.click(point["x"] + 4, point["y"] + 4)
    page.wait_for_url(re.compile(r"task=\d+"))
    task = re.search(r"task=(\d+)", page.url)[1]
    expect(page.get_by_text(re.compile(f"^Task {task}: "))).to_be_in_viewport()
