"""The page Train–test distance in a browser: a slider moves the split, a class is clicked, trees are drawn."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import settle

MAP = ".st-key-split_map .js-plotly-plot"
# The position of a class of the map in the window.
PLACE = """([where, name]) => {
    const chart = document.querySelector(where);
    for (const trace of chart._fullData) {
        const i = [...(trace.hovertext || [])].findIndex((t) => t.startsWith(name + ':'));
        if (i < 0) continue;
        const box = chart.querySelector('.nsewdrag').getBoundingClientRect();
        return [box.x + chart._fullLayout.xaxis.d2p(trace.x[i]), box.y + chart._fullLayout.yaxis.d2p(trace.y[i])];
    }
    return null;
}"""


def test_a_slider_moves_the_split_a_class_is_clicked_and_seen_and_two_trees_are_drawn(page, app: str) -> None:
    page.goto(f"{app}/train_test_distance")
    answer = page.locator(".st-key-fsviz_answer")
    expect(answer).to_contain_text("of 0.96.")
    expect(answer).to_contain_text("Distance inside test: 0.58")
    page.get_by_role("slider", name="Target divergence (R)").focus()
    page.keyboard.press("ArrowRight")
    expect(answer).to_contain_text("of 1.")
    page.wait_for_url(re.compile(r"divergence=1(&|$)"))
    settle(page)
    page.wait_for_function(f"() => document.querySelector('{MAP} .nsewdrag')")
    x, y = page.evaluate(PLACE, [MAP, "hamburger"])
    page.mouse.move(x, y, steps=4)
    expect(page.locator(".hover-images img")).to_be_visible()  # its picture
    page.mouse.click(x, y)
    expect(page.get_by_text("hamburger is a train class.")).to_be_visible()
    expect(page.locator(".tile")).to_have_count(8)
    assert page.get_by_text("hamburger is a train class.").bounding_box()["y"] < 850  # next to the map
    settle(page)
    page.get_by_role("radio", name="Class trees").click()
    expect(page.locator(".st-key-tanglegram .js-plotly-plot")).to_be_visible()
    expect(answer).to_contain_text("Paths between two classes differ by")
    expect(page.locator('[data-testid="stToast"]')).to_have_count(0)
