"""The page Classes in a real browser: rings and graphs answer clicks, and so do cells; DF20 stays usable."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import expect

from fsviz.figures.palette import ACCENT, SERIES, meaning
from tests.browser.conftest import eventually, insist, settle, still

GRAPH = ".st-key-taxonomy_graph canvas"
# Places in the window where the graph, right of its legend, has one of these colours.
COLOURED = """(colours) => {
    const canvas = document.querySelector('.st-key-taxonomy_graph canvas');
    const scale = canvas.width / canvas.clientWidth;
    const box = canvas.getBoundingClientRect();
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const spots = [];
    for (let y = 0; y < canvas.height; y += 2)
        for (let x = Math.round(170 * scale); x < canvas.width; x += 2) {
            const i = (y * canvas.width + x) * 4;
            const has = (colour) => colour.every((part, c) => data[i + c] === part);
            if (colours.some(has)) spots.push([box.x + x / scale, box.y + y / scale]);
        }
    return spots;
}"""


def rgb(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


CLASSES, ROOT = [rgb(colour) for colour in SERIES if colour != ACCENT], [rgb(meaning("root"))]


def open_page(page, app: str, query: str = "") -> None:
    page.goto(f"{app}/classes{query}")
    page.locator(GRAPH).first.wait_for()
    settle(page)
    still(page.locator(GRAPH).first)  # the graph grows into place


def expect_classes(page, least: int) -> list[list[float]]:
    """Waits until so many places have the colour of classes; these places."""

    def spots() -> list[list[float]]:
        places = page.evaluate(COLOURED, CLASSES)
        assert len(places) >= least, "too little of the colour of classes is drawn"
        return places

    return eventually(page, spots)


def places_of_classes(page, *nth: float) -> list[tuple[float, float]]:
    """Places in the graph of some classes: once one is picked the others are faint, and no longer have their colour."""
    page.locator(GRAPH).first.scroll_into_view_if_needed()
    still(page.locator(GRAPH).first)
    spots, box = expect_classes(page, 100), page.locator(GRAPH).first.bounding_box()
    picked = (spots[int(n * (len(spots) - 1))] for n in nth)
    return [(x - box["x"], y - box["y"]) for x, y in picked]


def click_a_class(page, place: tuple[float, float]) -> None:
    page.locator(GRAPH).first.scroll_into_view_if_needed()
    still(page.locator(GRAPH).first)
    box = page.locator(GRAPH).first.bounding_box()
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])


def test_no_label_stands_on_another_in_a_narrow_window_and_a_wide_one_has_graph_card_and_map(page, app: str) -> None:
    page.set_viewport_size({"width": 1000, "height": 900})
    open_page(page, app)
    places = page.locator(".st-key-distance_map .ytick text")
    places.nth(29).wait_for()

    def apart() -> bool:
        boxes = sorted((place.bounding_box() for place in places.all()), key=lambda box: box["y"])
        assert len(boxes) == 30
        return all(above["y"] + 0.8 * above["height"] <= below["y"] for above, below in itertools.pairwise(boxes))

    still(page.locator(".st-key-distance_map .js-plotly-plot"))
    eventually(page, apart)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator(GRAPH).first.scroll_into_view_if_needed()
    page.get_by_text("30 classes, 24 concepts").wait_for()
    page.get_by_text("Example class.").wait_for()
    page.locator(".st-key-distance_map .js-plotly-plot").wait_for()
    page.get_by_text("Closest pairs").wait_for()


def test_clicks_make_a_task_and_take_classes_out_again(page, app: str) -> None:
    open_page(page, app, "?dataset=tiered_imagenet&layout=radial")
    first, second = places_of_classes(page, 0.02, 0.5)
    click_a_class(page, first)
    page.wait_for_url(re.compile("classes="))
    settle(page)
    page.mouse.move(5, 5)
    still(page.locator(GRAPH).first)
    click_a_class(page, second)
    page.get_by_text("Selected task: 2 classes").wait_for()
    page.get_by_text("Closest shared concept").wait_for()
    eventually(page, lambda: len(re.findall("classes=", page.url)) == 2)
    settle(page)
    page.locator(".st-key-classes").get_by_role("button", name=re.compile("[Cc]lear|[Rr]emove")).first.click()
    page.get_by_text("Selected task: 2 classes").wait_for(state="detached")


def test_the_tooltip_shows_the_number_of_classes_of_a_concept(page, app: str) -> None:
    open_page(page, app, "?dataset=demo&split=all&layout=radial")
    spots = eventually(page, lambda: page.evaluate(COLOURED, ROOT) or False)
    x, y = spots[len(spots) // 2]
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.get_by_text(": 107 classes").wait_for()


def test_rings_lead_down_and_back_and_a_cell_leads_to_its_two_classes(page, app: str) -> None:
    open_page(page, app, "?dataset=tiered_imagenet&split=val")
    box = page.locator(GRAPH).first.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(middle[0] + 90, middle[1] - 8)
    page.wait_for_url(re.compile("at=n"))
    back = page.get_by_role("button", name=re.compile("All 97 classes"))
    back.click()
    eventually(page, lambda: "at=" not in page.url)
    back.wait_for(state="detached")
    chart = page.locator(".st-key-distance_map .js-plotly-plot")
    expect(chart).to_have_count(1)  # that of the concept below is gone
    still(chart)
    chart.scroll_into_view_if_needed()
    still(chart)

    def click_a_cell() -> None:
        box = chart.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)

    insist(click_a_cell, page.get_by_text("Selected task: 2 classes"))
    eventually(page, lambda: len(re.findall("classes=", page.url)) == 2)


def test_df20_is_fluent(page, app: str) -> None:
    open_page(page, app, "?dataset=df20&layout=radial&depth=8")
    page.get_by_text("1,604").first.wait_for()
    expect_classes(page, 201)
    box = page.locator(GRAPH).first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 300)
    for _ in range(5):
        page.mouse.wheel(0, -120)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.get_by_text("1,604").first.wait_for()  # five zooms of 2,001 nodes later the page still answers


def test_the_class_of_a_card_arrives_in_the_gallery(page, app: str) -> None:
    page.goto(f"{app}/classes?classes=fox")
    settle(page)
    page.get_by_text("Show all images").first.click()
    page.wait_for_url("**/images?**")
    settle(page)
    expect(page.locator('[data-testid="stMultiSelect"]').filter(has_text="Class").first).to_contain_text("fox")
