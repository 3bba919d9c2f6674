"""The Splits page in a real browser: a slider moves the split, a class is clicked, a split is saved and used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serving, settle

MAP = ".st-key-split_map .js-plotly-plot"
# Where a class of the map stands in the window.
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


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A workspace of its own: a split is saved here."""
    home: Path = tmp_path_factory.mktemp("splits") / "home"
    with serving(home) as url:
        yield url


def test_a_slider_moves_the_split_and_a_class_is_clicked_and_seen(page, app: str) -> None:
    page.goto(f"{app}/Splits")
    expect(page.get_by_text("asked for 0.96")).to_be_visible()
    expect(page.get_by_text("by chance 39%")).to_be_visible()
    page.get_by_role("slider", name="Divergence asked for (R)").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("asked for 1", exact=True)).to_be_visible()
    page.wait_for_url(re.compile(r"divergence=1(&|$)"))
    settle(page)
    page.wait_for_function(f"() => document.querySelector('{MAP} .nsewdrag')")
    x, y = page.evaluate(PLACE, [MAP, "hamburger"])
    page.mouse.move(x, y, steps=4)
    expect(page.locator(".beside img")).to_be_visible()  # its picture
    page.mouse.click(x, y)
    expect(page.get_by_text("hamburger is a train class.")).to_be_visible()
    expect(page.locator(".tile")).to_have_count(8)


def test_a_link_opens_two_trees_and_the_published_way(page, app: str) -> None:
    page.goto(f"{app}/Splits?mode=paper&show=Trees")
    expect(page.get_by_text("The objective is at its floor, 499.993")).to_be_visible()
    expect(page.locator(".st-key-tanglegram .js-plotly-plot")).to_be_visible()
    expect(page.get_by_text("How far the trees are apart")).to_be_visible()
    expect(page.locator('[data-testid="stToast"]')).to_have_count(0)


def test_a_saved_split_is_chosen_on_the_page_tasks(page, app: str) -> None:
    page.goto(f"{app}/Splits?divergence=2")
    page.get_by_role("button", name="Save split").click()
    expect(page.get_by_text("Saved: r2_train, r2_val, r2_test are splits of")).to_be_visible()
    page.goto(f"{app}/Tasks?split=r2_test")
    settle(page)
    page.get_by_role("button", name="The same tasks from a terminal").click()
    expect(page.locator("code", has_text="--split r2_test").first).to_be_visible()
    expect(page.locator('[data-testid="stToast"]')).to_have_count(0)
