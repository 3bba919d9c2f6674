"""The layout of every page: controls and answers in the first screen, nothing wider than the window."""

from __future__ import annotations

import pytest

from fsviz.ui.parts.page import HOME, PAGES
from tests.browser.conftest import eventually, settle

# Lessons ask: their answer is not in sight. A form has no figure.
WITHOUT_ANSWER, WITHOUT_FIGURE = {"learn"}, {"add_images"}
HIGHEST, WINDOW = 300, 900
WIDTHS = (390, 1000, 1280, 1440)

PLACES = """() => {
    const main = document.querySelector('[data-testid="stMain"]');
    const boxes = (query) => [...document.querySelectorAll(query)]
        .map((node) => node.getBoundingClientRect())
        .filter((box) => box.width > 0 && box.height > 0);
    const tops = (query, least = 0) => boxes(query)
        .filter((box) => box.height > least)
        .map((box) => box.top + main.scrollTop);
    const controls = boxes('[data-testid="stSidebar"] :is(.stSelectbox, .stMultiSelect, .stSlider, .stNumberInput, '
        + '.stTextInput, .stCheckbox, .stButtonGroup, .stRadio)');
    const inMain = '[data-testid="stMainBlockContainer"] ';
    return {
        controls: controls.map((box) => box.bottom),
        title: tops(inMain + 'h1'),
        answer: tops('.st-key-fsviz_answer p'),
        figure: tops(inMain + ':is(.stPlotlyChart, .stEChartsChart, .stDataFrame)')
            .concat(tops(inMain + '.stBidiComponent', 60)),
    };
}"""
# How far the page reaches beyond the window, and what does. The row of pages and tables scroll by themselves; a figure
# in a closed section gets its width when the section opens.
TOO_WIDE = """() => {
    const main = document.querySelector('[data-testid="stMain"]');
    const width = document.documentElement.clientWidth;
    const scrolls = (node) => node.closest('.st-key-fsviz_siblings, .stDataFrame, .stCode, pre, details:not([open])');
    const wide = [...document.querySelectorAll('[data-testid="stMainBlockContainer"] :is(.stElementContainer, '
        + '.stColumn, .stPlotlyChart, button, a, p, h1, h2, h3)')]
        .filter((node) => !scrolls(node) && node.getBoundingClientRect().width > 1)
        .filter((node) => node.getBoundingClientRect().right > width + 1)
        .map((node) => `${node.tagName} ${node.className} ${node.innerText}`.slice(0, 120));
    const beyond = [document.documentElement.scrollWidth - width, main.scrollWidth - main.clientWidth];
    return [...beyond.filter((pixels) => pixels > 0).map(String), ...wide.slice(0, 3)];
}"""


def _open(page, app: str, slug: str, query: str = "") -> None:
    page.goto(f"{app}/{'' if slug == HOME else slug}{query}")
    page.locator("h1", has_text=PAGES[slug].question).wait_for()
    settle(page)


@pytest.mark.parametrize("dataset", ["demo", "fruit"])
@pytest.mark.parametrize("slug", list(PAGES))
def test_controls_answer_and_figure_are_in_the_first_screen(page, app: str, slug: str, dataset: str) -> None:
    _open(page, app, slug, f"?dataset={dataset}")

    def in_place() -> bool:
        places = page.evaluate(PLACES)
        assert places["controls"] and places["controls"][0] < 160, places  # the dataset
        assert all(end < WINDOW for end in sorted(places["controls"])[:4]), places
        assert places["title"] and min(places["title"]) < HIGHEST, places
        for kind, without in (("answer", WITHOUT_ANSWER), ("figure", WITHOUT_FIGURE)):
            assert slug in without or (places[kind] and min(places[kind]) < HIGHEST), (kind, places)
        return True

    eventually(page, in_place)


@pytest.mark.parametrize("slug", list(PAGES))
def test_nothing_is_wider_than_the_window(page, app: str, slug: str) -> None:
    for query in ("", "?classroom=true"):
        page.set_viewport_size({"width": 1440, "height": WINDOW})
        _open(page, app, slug, query)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": WINDOW})

            def fits(where: str = f"{width} px {query}") -> None:
                assert not (wide := page.evaluate(TOO_WIDE)), (where, wide)

            eventually(page, fits)
