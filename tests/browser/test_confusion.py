"""The Confusion page in a real browser: the graph is there at once and answers clicks on edges and classes."""

from __future__ import annotations

import re

import numpy as np
from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle, still

GRAPH = ".st-key-class_graph canvas"
# Places in the window, on a canvas, whose colour passes a test: strong edges are red, classes of the first community
# blue.
SPOTS = """([where, low, high]) => {
    const canvas = document.querySelector(where);
    const scale = canvas.width / canvas.clientWidth;
    const box = canvas.getBoundingClientRect();
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const spots = [];
    for (let y = Math.round(40 * scale); y < canvas.height; y += 1)
        for (let x = 0; x < canvas.width; x += 1) {
            const i = (y * canvas.width + x) * 4;
            const fits = [0, 1, 2].every(c => data[i + c] >= low[c] && data[i + c] <= high[c]);
            if (fits) spots.push([box.x + x / scale, box.y + y / scale]);
        }
    return spots;
}"""
RED, BLUE = ([160, 0, 0], [205, 85, 70]), ([0x3D, 0x6F, 0xE0], [0x3D, 0x6F, 0xE0])


def open_page(page, app: str, query: str = "", chart: str = GRAPH) -> None:
    page.goto(f"{app}/Confusion{query}")
    page.locator(chart).first.wait_for()
    settle(page)
    still(page.locator(chart).first)


def click(page, colour, chart: str = GRAPH) -> None:
    """Clicks where most of this colour is around, well inside a line or a node."""
    page.locator(chart).first.scroll_into_view_if_needed()
    still(page.locator(chart).first)

    def most() -> list[float]:
        spots = page.evaluate(SPOTS, [chart, *map(list, colour)])
        assert spots, "nothing of this colour is drawn"
        places = np.array(spots)
        return spots[int(np.argmax([(np.abs(places - place).max(axis=1) <= 3).sum() for place in places]))]

    page.mouse.click(*eventually(page, most))


def test_the_demo_opens_with_its_graph_and_clicks_pick_a_pair_and_a_class(page, app: str) -> None:
    open_page(page, app)
    page.get_by_text("Nothing is picked yet").wait_for()
    expect(page.locator(".tile")).to_have_count(48)  # the pair at the top, in images
    click(page, RED)
    page.wait_for_url(re.compile("classes=.*classes="))
    page.get_by_text("Nothing is picked yet").wait_for(state="detached")
    settle(page)
    expect(page.locator(".tile")).to_have_count(48)
    open_page(page, app)
    click(page, BLUE)
    page.get_by_text("is most alike to").wait_for()
    eventually(page, lambda: len(re.findall("classes=", page.url)) == 1)


def test_base_classes_are_matched_and_an_edge_shows_its_images(page, app: str) -> None:
    chart = ".st-key-base_graph canvas"
    open_page(page, app, "?show=Base+classes&split=val", chart)
    for title in ("Perfect matches", "Split base classes", "Split novel classes"):
        page.get_by_text(title).first.wait_for()
    page.get_by_text("looks like").first.wait_for()
    click(page, RED, chart)
    page.locator(".tile").first.wait_for()
    page.get_by_text("runs of Louvain's algorithm").wait_for()
