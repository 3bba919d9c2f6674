"""Hostile names in a real browser: no link, no picture, no request and no script comes of them on any page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fsviz.ui.parts.page import HOME, PAGES
from tests.browser.conftest import ROOT, eventually, follow, insist, serving, settle
from tests.browser.test_pages import COLD
from tests.hostile import LINK, NAMES, PICTURE, make_hostile, make_hostile_run

# Looks at every element as it comes or changes, however short it stays (tooltips), also in charts (SVG) and in the
# shadow of components: `window.found` are those that would fetch, lead somewhere or run, of `window.seen` in all.
WATCH = """
{
    const NAMES = ['href', 'xlink:href', 'src', 'action', 'onerror'];
    window.found = [];
    window.seen = 0;
    const look = (e) => {
        if (e.nodeType !== Node.ELEMENT_NODE) return;
        window.seen += 1;
        const to = NAMES.slice(0, 4).map((name) => e.getAttribute(name)).filter(Boolean);
        const away = to.some((url) => {  // a name in the query of a link to a page of ours leads to that page
            const there = new URL(url, document.baseURI);
            return (there.origin === location.origin ? there.pathname : there.href).includes('evil.example');
        });
        if (away || e.hasAttribute('onerror')) window.found.push(e.outerHTML.slice(0, 300));
    };
    const observer = new MutationObserver((changes) => {
        for (const change of changes) {
            if (change.type === 'childList') change.addedNodes.forEach(whole);
            else if (NAMES.includes(change.attributeName)) look(change.target);
        }
    });
    const whole = (root) => {
        look(root);
        if (root.querySelectorAll) root.querySelectorAll('*').forEach(look);
    };
    const watch = (root) => {
        observer.observe(root, { childList: true, subtree: true, attributes: true });
        whole(root);
    };
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (how) {
        const root = attach.call(this, how);
        watch(root);
        return root;
    };
    watch(document);
}
"""


def expect_letters(tab) -> None:
    """No element that was ever in this tab came of a name."""
    assert tab.evaluate("() => window.seen") > 100
    assert tab.evaluate("() => window.found") == []


@pytest.fixture(scope="module", autouse=True)
def hostile(app: str, app_home: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(app_home))
        make_hostile_run(make_hostile(app_home.parent / "images"))


def test_names_are_letters_on_every_page(page, app: str) -> None:
    """All pages in one tab: those that no other module opens by a cold deep link are opened so, the others by the
    links of the sidebar."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.add_init_script(WATCH)
    for entry in PAGES.values():
        path = "/" if entry.slug == HOME else f"/{entry.slug}"
        if path in {"/", *COLD}:
            page.goto(f"{app}{path}?dataset=hostile")
        else:
            follow(page, entry.slug)
        expect(page.locator("h1", has_text=entry.question)).to_be_visible()
        settle(page)
        if entry.slug != "learn":  # which is about the demo
            page.get_by_text(PICTURE).first.wait_for()
        settle(page)
        eventually(page, lambda: len(page.locator('[data-testid="stMainBlockContainer"]').inner_text()) > 200)
        for chart in page.locator('[data-testid="stEChartsChart"], .js-plotly-plot').all():  # tooltips have names too
            chart.scroll_into_view_if_needed()
            box = chart.bounding_box()
            for across in (0.35, 0.6):
                page.mouse.move(box["x"] + across * box["width"], box["y"] + box["height"] / 2)
                page.wait_for_timeout(60)  # a chart answers a pointer that rests
        expect_letters(page)
        assert dialogs == [], entry.label


WORDS = """
import sys
sys.path.insert(0, {root!r})
import streamlit as st
from fsviz.text import escape_markdown
for i, name in enumerate({names!r}):
    with st.container(key=f"at{{i}}"):
        for place in ("{{}}", "above\\n{{}}", "- {{}}", "**{{}}**: x"):
            st.markdown(place.format(escape_markdown(name)))
"""


def test_streamlit_shows_a_plain_value_letter_by_letter(browser, tmp_path: Path) -> None:
    """At the start of a text, below a line, in a list, in bold: the same letters, and no element of their own."""
    lines = [
        "1. one",
        "- x",
        "2) y",
        "===",
        "# h",
        "> q",
        "--- --",
        ":smile: :a:",
        "16:30",
        "[^1]",
        "~~~",
        "***",
        "`a``b",
    ]
    names = [*NAMES, *lines, "\\\\*x*", "x -> y <- z >= <->", "HTTPS://EVIL.example/a_b?c=d&e", "mailto:a@b.example"]
    (tmp_path / "words.py").write_text(WORDS.format(root=str(ROOT), names=names), encoding="utf-8")
    tab = browser.new_page()
    words = ("streamlit", "run", str(tmp_path / "words.py"), "--server.headless", "true")
    with serving(tmp_path / "home", *words) as url:
        tab.goto(url)
        tab.locator(f".st-key-at{len(names) - 1} strong").wait_for()
        settle(tab)
        for i, name in enumerate(names):
            want = " ".join(re.sub("[\u202e\u2066]", "", name).split())
            texts = tab.locator(f".st-key-at{i} [data-testid=stMarkdownContainer]")
            expected = [want, f"above {want}", want, f"{want}: x"]
            eventually(tab, lambda t=texts, e=expected: [" ".join(s.split()) for s in t.all_inner_texts()] == e)
            inside = texts.evaluate_all("all => all.flatMap((e) => [...e.querySelectorAll('*')].map((c) => c.tagName))")
            assert set(inside) <= {"P", "SPAN", "UL", "LI", "STRONG"}, (name, inside)
    tab.close()


def test_the_report_of_hostile_runs_asks_nobody_and_no_table_writes_a_csv_around_our_own(
    page, browser, app: str, tmp_path: Path
) -> None:
    page.goto(f"{app}/runs?dataset=hostile")
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML report", exact=True).click()
    download.value.save_as(tmp_path / "report.html")
    report, events = browser.new_page(), []
    report.on("request", lambda request: events.append(request.url))
    report.on("dialog", lambda dialog: events.append(dialog.message))
    report.add_init_script(WATCH)
    report.goto((tmp_path / "report.html").as_uri())
    report.wait_for_selector(".js-plotly-plot .main-svg")
    assert [url for url in events if not url.startswith(("file:", "data:", "blob:"))] == []
    tasks = report.locator(".recipe tr", has=report.locator("th", has_text="Tasks")).locator("td")
    expect(tasks).to_have_count(1)
    for name in (LINK, PICTURE):  # of the testbed and its recipe, letter by letter
        expect(tasks).to_contain_text(name)
    expect_letters(report)
    report.close()

    # Streamlit's own button writes cells as they are; a spreadsheet would run them.
    page.goto(f"{app}/runs?dataset=hostile&show=All+runs")
    settle(page)
    table = page.locator('[data-testid="stDataFrame"]').last
    table.scroll_into_view_if_needed()
    insist(table.hover, page.get_by_role("button", name="Search").last)
    assert page.get_by_role("button", name="Download as CSV").count() == 0
