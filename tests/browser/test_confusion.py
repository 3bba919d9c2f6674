"""Page Confusion in a browser: hovers and clicks on edges and classes of the graph."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle, still

GRAPH = ".st-key-class_graph canvas"
# The place in the window, on a canvas, with most of a colour around it, well inside a line or a node: strong edges are
# red, classes of the first community blue.
PLACE = """([where, low, high]) => {
    const canvas = document.querySelector(where);
    const { width, height } = canvas;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    const scale = width / canvas.clientWidth;
    const fits = (x, y) => [0, 1, 2].every((c) => {
        const value = data[(y * width + x) * 4 + c];
        return value >= low[c] && value <= high[c];
    });
    const spots = [];
    const left = new Uint32Array((width + 1) * (height + 1));  // how many fit left of and above a place
    for (let y = 0; y < height; y += 1)
        for (let x = 0, row = 0; x < width; x += 1) {
            if (y >= Math.round(40 * scale) && fits(x, y)) {
                spots.push([x, y]);
                row += 1;
            }
            left[(y + 1) * (width + 1) + x + 1] = left[y * (width + 1) + x + 1] + row;
        }
    const at = (x, y) => left[Math.min(Math.max(y, 0), height) * (width + 1) + Math.min(Math.max(x, 0), width)];
    const around = ([x, y]) => at(x + 4, y + 4) - at(x - 3, y + 4) - at(x + 4, y - 3) + at(x - 3, y - 3);
    const box = canvas.getBoundingClientRect();
    let [most, best] = [0, null];
    for (const spot of spots) if (around(spot) > most) [most, best] = [around(spot), spot];
    return best && [box.x + best[0] / scale, box.y + best[1] / scale];
}"""
RED, BLUE = ([160, 0, 0], [205, 85, 70]), ([0x3D, 0x6F, 0xE0], [0x3D, 0x6F, 0xE0])


def open_page(page, app: str, query: str = "", chart: str = GRAPH) -> None:
    page.goto(f"{app}/confusion{query}")
    page.locator(chart).first.wait_for()
    settle(page)
    still(page.locator(chart).first)


def click(page, colour, chart: str = GRAPH) -> None:
    page.locator(chart).first.scroll_into_view_if_needed()
    still(page.locator(chart).first)

    def place() -> list[float]:
        spot = page.evaluate(PLACE, [chart, *map(list, colour)])
        assert spot, "nothing of this colour is drawn"
        return spot

    page.mouse.click(*eventually(page, place))


def test_the_demo_opens_with_its_graph_and_clicks_select_a_pair_and_a_class(page, app: str) -> None:
    open_page(page, app)
    page.get_by_text("Most confused pair", exact=True).first.wait_for()
    expect(page.locator(".tile")).to_have_count(8 + 48)  # the most confused pair, next to the graph and below
    assert page.locator(".tile").nth(7).bounding_box()["y"] < 800  # in the first screen
    click(page, BLUE)
    page.get_by_text(re.compile("Most confused with")).first.wait_for()
    page.get_by_text("Most confused pair", exact=True).first.wait_for(state="detached")
    eventually(page, lambda: len(re.findall("classes=", page.url)) == 1)
    settle(page)
    page.mouse.move(5, 5)
    click(page, RED)
    page.wait_for_url(re.compile("classes=.*classes="))
    page.get_by_text(re.compile("Most confused with")).first.wait_for(state="detached")
    page.get_by_text("Selected pair").wait_for()
    settle(page)
    expect(page.locator(".tile")).to_have_count(8 + 48)


def test_a_hover_shows_a_picture_and_the_most_similar_classes(page, app: str) -> None:
    open_page(page, app)

    def place() -> list[float]:
        spot = page.evaluate(PLACE, [GRAPH, *map(list, BLUE)])
        assert spot, "no node of this colour"
        return spot

    page.mouse.move(*eventually(page, place))
    box = page.locator(".st-key-class_graph div", has_text=re.compile(r"[a-z]: 0\.\d\d bits")).last
    box.wait_for()
    image = box.locator("img")
    expect(image).to_have_count(1)
    eventually(page, lambda: image.evaluate("image => image.naturalWidth > image.naturalHeight"))


def test_training_classes_are_matched_and_an_edge_shows_its_images(page, app: str) -> None:
    chart = ".st-key-base_graph canvas"
    open_page(page, app, "?show=Training+classes&split=val", chart)
    for title in ("One-to-one", "One training class, several test classes", "One test class, several training classes"):
        page.get_by_text(title).first.wait_for()
    click(page, RED, chart)
    page.locator(".tile").nth(8).wait_for()  # after the eight next to the graph above
    page.get_by_text("Louvain runs), ").wait_for()
