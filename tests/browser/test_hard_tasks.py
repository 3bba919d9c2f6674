"""Page Hard supports in a browser, on the demo."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, insist, settle, still

TRIES, SEARCHES = itertools.count(), itertools.count()  # seeds: a second try finds no run of the first
SECTIONS = {
    "Attribute shift": "Cost of one attribute shift",
    "Semantic distance": "Semantic distance and hard supports",
    "Search methods": "How rare are tasks this hard?",
    "Step size": "Number of steps",
    "Other classifiers": "Do hard tasks transfer to other classifiers?",
}


def open_page(page, app: str, query: str = "") -> None:
    page.goto(f"{app}/hard_supports{query}")
    settle(page)
    page.locator(".st-key-fsviz_answer", has_text="with random ones").wait_for()


def answer(page) -> str:
    return page.locator(".st-key-fsviz_answer").inner_text()


def cost(page) -> float:
    return float(re.search(r"cost ([\d.]+) ± ", answer(page))[1])


def metric(page, label: str) -> float:
    exact = page.locator('[data-testid="stMetricLabel"]', has_text=re.compile(rf"^\s*{re.escape(label)}\s*$"))
    box = page.locator('[data-testid="stMetric"]').filter(has=exact).first
    return float(re.search(r"-?[\d.]+", box.locator('[data-testid="stMetricValue"]').inner_text())[0])


def look_behind_a_search(page) -> None:
    """A click shows the tasks of a search below its figure, which stays where it is; a second one lets go of them."""
    chart = page.locator('[class*="st-key-compared"] .js-plotly-plot')
    easy = chart.locator(".scatterlayer .trace").nth(1).locator(".point").last
    chart.scroll_into_view_if_needed()
    still(chart)
    before, box = chart.bounding_box(), easy.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(*middle)
    expect(page).to_have_url(re.compile("search_of=[a-z]+%40easy"))
    expect(page.get_by_text(re.compile("Easy supports by .*, easiest first"))).to_be_visible()
    settle(page)
    assert chart.bounding_box() == before
    page.mouse.click(*middle)
    expect(page).not_to_have_url(re.compile("search_of="))
    settle(page)
    assert chart.bounding_box() == before


def test_the_demo_shows_a_result_at_once_and_a_task_can_be_read(page, app: str) -> None:
    open_page(page, app)
    eventually(page, lambda: cost(page) > 15)
    hard, random, easy, _ = (float(number) for number in re.findall(r"([\d.]+)%", answer(page)))
    assert hard < random < easy
    chart = page.locator(".st-key-distribution .js-plotly-plot")
    chart.wait_for()
    assert chart.bounding_box()["y"] < 300
    strips = page.locator('[class*="st-key-strip_"] .tile')
    expect(strips).to_have_count(20)  # two images of five classes, hard and easy
    assert strips.last.bounding_box()["y"] < 800
    page.wait_for_selector("text=three support sets")
    page.wait_for_selector(".tile.wrong")
    expect(page.locator(".row.support")).to_have_count(15)  # five classes, three support sets
    expect(page.locator(".row.query")).to_have_count(5)
    expect(page.locator(".row.query .tile.wrong .badge").first).to_be_attached()
    page.wait_for_selector("text=Attribute shifts in this support")

    settle(page)
    wrong = page.locator(".row.query .tile.wrong")
    hard = wrong.count()
    page.get_by_role("radio", name="easy support").click()
    eventually(page, lambda: wrong.count() < hard)
    settle(page)

    page.locator(".row.query .tile").first.click()
    dialog = page.locator('[data-testid="stDialog"]')
    dialog.wait_for()
    expect(dialog).to_contain_text("query of task")
    dialog.locator("img").first.wait_for()


def test_a_click_on_the_distribution_lists_its_tasks_and_every_section_opens(page, app: str) -> None:
    open_page(page, app, f"?n_tasks=50&n_way=3&n_shot=1&n_query=4&seed={next(TRIES)}")
    page.wait_for_selector("text=Command line")
    settle(page)
    chart = page.locator(".st-key-distribution .js-plotly-plot")
    points = chart.locator(".scatterlayer .trace .point")  # markers alone: lines have none
    box = points.nth(2).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("text=Show all tasks")
    expect(page).to_have_url(re.compile("bar=hard-"))
    title = page.get_by_text("the hardest of this bar")
    expect(title).to_be_visible()
    assert title.bounding_box()["y"] < 400  # next to the figure
    expect(chart).to_have_count(1)  # while it redraws, the old one is next to it for a moment
    expect(chart).to_be_visible()
    page.get_by_role("button", name="Show all tasks").click()
    expect(page).not_to_have_url(re.compile("bar="))
    settle(page)

    for section, words in SECTIONS.items():
        page.get_by_role("radio", name=section).click()
        page.wait_for_selector(f"text={words}")
        settle(page)
        page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length >= 2")
        assert page.locator('[data-testid="stAlertContentError"]').count() == 0, section
        if section == "Search methods":
            look_behind_a_search(page)
        if section == "Step size":
            slider = page.locator('[data-testid="stSlider"]', has_text="Step size").get_by_role("slider")
            slider.focus()
            page.keyboard.press("Home")
            page.wait_for_selector("text=Hard supports at step 0.1")
            small = eventually(page, lambda: metric(page, "Hard supports at step 0.1"))
            page.keyboard.press("End")
            page.wait_for_selector("text=Hard supports at step 1000")
            eventually(page, lambda small=small: metric(page, "Hard supports at step 1000") < small - 10)
            settle(page)
    expect(page).to_have_url(re.compile("show=Other"))


def test_a_long_search_runs_as_a_job_ends_in_the_page_and_is_saved(page, app: str) -> None:
    open_page(page, app, f"?n_tasks=2000&search=greedy&n_way=3&n_shot=1&n_query=4&seed={next(SEARCHES)}")
    page.get_by_role("button", name="Run", exact=True).click()
    command = page.locator("code").filter(has_text="greedy")  # before the run has ended, that of the preview

    def look() -> None:
        if not page.locator("code").count():
            page.get_by_role("button", name="Command line").click()

    insist(look, command)
    page.keyboard.press("Escape")
    expect(page.locator('[data-testid="stProgress"]')).to_have_count(0)
    expect(page.get_by_role("button", name="Run", exact=True)).to_have_count(0)
    eventually(page, lambda: cost(page) > 15)
    settle(page)
    page.get_by_role("button", name="Save testbed").click()
    page.wait_for_selector("text=Saved as demo-test-hard-")
