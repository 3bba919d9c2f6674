"""Ways into pages and between them: with the demo, with datasets that lack things, with nonsense in the link."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import QUESTION, ROOT, eventually, follow, settle, still

HERE = Path(__file__)
PAGES = ["/", *(f"/{path.stem}" for path in sorted((ROOT / "pages").glob("*.py")) if path.stem != "overview")]
# Pages with a module of their own here are opened by cold links there, and every tab is looked at when it is closed.
# The walk over all pages (test_hostile_names.py) opens the others so.
OTHERS = "".join(path.read_text(encoding="utf-8") for path in HERE.parent.glob("test_*.py") if path != HERE)
ELSEWHERE = set(re.findall(r"\{app\}(/\w*)", OTHERS))
COLD = {path for path in PAGES if path not in ELSEWHERE}


def test_nonsense_in_the_link_is_text_fetches_nothing_and_the_page_stays_up(page, app: str) -> None:
    """On one page; tests/ui/test_shell.py opens every page with nonsense, without a browser."""
    nonsense = "n_way=many&%3Cb%3E=1&![y](http://127.0.0.2/y.png)=1"
    page.goto(f"{app}/sample_tasks?dataset=![x](http://127.0.0.2/x.png)&{nonsense}")
    settle(page)
    page.get_by_text("Unknown dataset '![x](http://127.0.0.2/x.png)'").wait_for()
    expect(page.locator("h1").first).to_have_text(QUESTION, use_inner_text=True)


def test_the_tree_map_opens_a_group_and_the_dataset_stays_on_the_way_through_the_pages(page, app: str) -> None:
    page.goto(f"{app}/?dataset=mini_imagenet")
    settle(page)
    group = page.locator(".treemaplayer .slicetext", has_text="artifact").first
    group.scroll_into_view_if_needed()
    still(page.locator(".js-plotly-plot", has=group))
    n_before = page.locator(".treemaplayer .slice").count()
    box = group.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function(f"() => document.querySelectorAll('.treemaplayer .slice').length < {n_before}")
    page.wait_for_url("**box=**")
    follow(page, "classes")
    page.wait_for_url("**/classes**")
    expect(page).to_have_url(re.compile("dataset=mini_imagenet"))
    settle(page)
    page.get_by_text("miniImageNet").first.wait_for()


def test_the_overview_has_ways_to_start_and_a_sample_image_leads_to_itself(page, app: str, app_home: Path) -> None:
    page.goto(f"{app}/images")  # been there before
    settle(page)
    page.goto(app)
    settle(page)
    page.get_by_text("not photographs").first.wait_for()
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length >= 2")
    main = page.locator('[data-testid="stMainBlockContainer"]')
    for path in ("add_images", "learn"):
        expect(main.locator(f'a[href*="{path}"]').first).to_be_attached()
    page.get_by_role("button", name="tiger").first.click()
    page.get_by_role("link", name="Open in Images").click()
    page.wait_for_url("**/images?**image=**")
    page.locator("h4", has_text="tiger").first.wait_for()
    log = (app_home.parent / "log.txt").read_text()
    assert app in log and "ScriptRunContext" not in log, log


def test_a_page_that_lacks_features_leads_to_them_or_to_the_demo_with_a_real_result(page, app: str) -> None:
    page.goto(f"{app}/hard_supports?dataset=digits")
    settle(page)
    page.get_by_text("fsviz extract digits --backbone efficientnet_lite0").wait_for()
    settle(page)
    page.locator('[data-testid="stMainBlockContainer"]').get_by_role("link", name="Extract features").click()
    page.wait_for_url("**/add_images?**dataset=digits**")
    page.get_by_text("Handwritten digits").first.wait_for()
    page.goto(f"{app}/evaluate?dataset=dtd")
    page.get_by_role("button", name="Open the demo").click()
    answer = page.locator(".st-key-fsviz_answer")
    expect(answer).to_contain_text("Preview: 200 tasks")
    settle(page)
    accuracy = eventually(page, lambda: float(re.search(r"([\d.]+) ± [\d.]+%", answer.inner_text())[1]))
    assert 20 < accuracy < 99.5
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length >= 2")
    page.get_by_role("radiogroup", name="Section").get_by_text("Errors", exact=True).click()
    expect(page.get_by_text("Most confused pairs")).to_be_visible()
    expect(page.locator(".tile img").nth(10)).to_be_attached()  # the images behind the mistakes
