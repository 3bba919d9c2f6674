"""The page Image map in a real browser: a click is answered next to the map and dims the other images."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle, still

CHART = ".st-key-feature_map .js-plotly-plot"
# Where the points of the largest group of images are in the window.
POINTS = """() => {
    const plot = document.querySelector('.st-key-feature_map .js-plotly-plot');
    const box = plot.getBoundingClientRect(), { xaxis, yaxis, _size } = plot._fullLayout;
    const trace = plot._fullData.filter((t) => t.type === 'scattergl' && t.name.startsWith('grass'))[0];
    return Array.from(trace.x, (x, i) => [
        box.x + _size.l + xaxis.d2p(x), box.y + _size.t + yaxis.d2p(trace.y[i]), trace.customdata[i]]);
}"""
DIMMED = """() => document.querySelector('.st-key-feature_map .js-plotly-plot')._fullData
    .filter((t) => t.type === 'scattergl').map((t) => (t.selectedpoints || []).length)"""


def test_a_click_shows_the_image_next_to_the_map_and_dims_the_others(page, app: str) -> None:
    page.goto(f"{app}/image_map")
    settle(page)
    chart = page.locator(CHART)
    still(chart)
    box = chart.bounding_box()
    assert box["y"] < 300 and box["y"] + box["height"] <= 900
    points = eventually(page, lambda: page.evaluate(POINTS) or False)
    x, y, _ = min(points, key=lambda point: point[1])  # at the edge, where no other point is above it
    page.mouse.click(x, y)
    page.wait_for_url(re.compile(r"image=\d+"))
    settle(page)
    image_id = re.search(r"image=(\d+)", page.url)[1]
    title = page.get_by_text(f"image {int(image_id):,}").first
    expect(title).to_be_visible()
    assert 0 < title.bounding_box()["y"] < 500
    eventually(page, lambda: sum(page.evaluate(DIMMED)) == 1)
    page.get_by_role("button", name="Clear").click()
    eventually(page, lambda: "image=" not in page.url)
    settle(page)
    eventually(page, lambda: sum(page.evaluate(DIMMED)) == 0)
