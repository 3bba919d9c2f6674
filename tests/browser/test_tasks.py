"""The page Sample tasks in a real browser: sliders, histograms, the browser of tasks, testbeds to keep."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
from playwright.sync_api import expect

from tests.browser.conftest import eventually, settle, still

HISTOGRAM = ".st-key-coarsity_histogram .js-plotly-plot"


def open_page(page, app: str, query: str = "") -> None:
    page.goto(f"{app}/sample_tasks{query}")
    page.locator(HISTOGRAM).first.wait_for()
    settle(page)


def medians(page) -> list[float]:
    """The median coarsity of semantic and of uniform tasks in the answer."""
    answer = page.locator(".st-key-fsviz_answer").inner_text()
    return list(map(float, re.search(r"median coarsity ([\d.]+) vs ([\d.]+) for uniform", answer).groups()))


def coarsity(page) -> float:
    """That of the task that is shown."""
    caption = page.get_by_text(re.compile(r"Coarsity [\d.]+: mean squared"))
    return float(re.search(r"Coarsity ([\d.]+)", caption.inner_text())[1])


def expect_command(page, words: str) -> None:
    """In the command that does the same from a terminal."""
    pattern = re.compile(re.escape(words).replace(r"\ ", r"\s+") + r"(\s|$)")
    page.get_by_role("button", name="Command line").click()
    expect(page.locator('[data-testid="stCode"]')).to_have_text(pattern, use_inner_text=True)
    page.keyboard.press("Escape")
    expect(page.locator('[data-testid="stCode"]')).to_have_count(0)


def slider(page, label: str):
    return page.locator(f'input[type="range"][aria-label="{label}"]')


def test_the_demo_shows_histograms_and_a_task_with_images_at_once(page, app: str) -> None:
    open_page(page, app)
    semantic, uniform = eventually(page, lambda: medians(page))
    assert semantic < uniform
    page.locator(".st-key-task_images img").first.wait_for()
    expect(page.locator(".st-key-task_images .row")).to_have_count(10)  # support and queries of five classes
    page.locator(".st-key-task_distances .js-plotly-plot").wait_for()
    page.locator(".st-key-task_tree canvas").first.wait_for()
    _export(page)
    page.get_by_text("Class balance", exact=True).click()
    page.locator(".st-key-class_balance .js-plotly-plot").first.wait_for()
    expect(page).to_have_url(re.compile("show=Class"))


def test_a_click_is_answered_inside_the_window(page, app: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    open_page(page, app)
    assert page.locator(".st-key-fsviz_answer").bounding_box()["y"] < 230
    assert page.locator(HISTOGRAM).first.bounding_box()["y"] < 300
    still(page.locator(HISTOGRAM).first)
    box = page.locator(HISTOGRAM).first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.86, box["y"] + box["height"] - 60)
    expect(page.get_by_text(re.compile("tasks with a coarsity of"))).to_be_in_viewport()
    settle(page)
    expect(page.locator(".st-key-task_list .task").first).to_be_in_viewport()
    expect(page.locator(".st-key-task_images .tile").first).to_be_in_viewport()


def _export(page) -> None:
    """Pictures are taken by the browser, pages written when asked for; the list stays open meanwhile."""
    page.get_by_role("button", name="Export").click()
    listed = page.locator('[data-testid="stPopoverBody"]')
    expect(listed).to_contain_text("Class distances of the task")
    expect(listed.locator('[data-testid="stCode"]')).to_contain_text("fsviz sample demo", use_inner_text=True)

    def download(kind: str) -> bytes:
        settle(page)  # a run that ends meanwhile lets go of files that were made before
        with page.expect_download() as caught:
            listed.get_by_role("button", name=kind, exact=True).first.click()
        assert caught.value.suggested_filename.endswith(kind.lower())
        return Path(caught.value.path()).read_bytes()

    assert download("PNG").startswith(b"\x89PNG")  # of the histograms
    assert download("SVG").startswith(b"<svg") and download("HTML").startswith(b"<!doctype html>")
    assert listed.get_by_role("button", name="PNG", exact=True).count() > 1
    page.keyboard.press("Escape")


def test_every_step_of_a_slider_redraws_the_histogram_and_a_bar_opens_its_tasks(page, app: str) -> None:
    open_page(page, app, "?dataset=tiered_imagenet")
    histogram = page.locator(HISTOGRAM).first
    for thousandths in (384, 385):  # steps of 0.001
        before = still(histogram)
        slider(page, "Semantic weight α").press("ArrowRight")
        expect(page).to_have_url(re.compile(f"alpha=0.{thousandths}(&|$)"))
        eventually(page, lambda before=before: still(histogram) != before)
        settle(page)
    expect_command(page, "--alpha 0.385")

    page.locator(HISTOGRAM).first.scroll_into_view_if_needed()
    still(page.locator(HISTOGRAM).first)
    box = page.locator(HISTOGRAM).first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.72, box["y"] + box["height"] - 60)
    range_text = page.get_by_text(re.compile("tasks with a coarsity of"))
    range_text.wait_for()
    low, high = map(float, re.search(r"of ([\d.]+) to ([\d.]+)", range_text.inner_text()).groups())
    eventually(page, lambda: low <= coarsity(page) <= high)
    expect(page).to_have_url(re.compile("bar=chosen"))
    settle(page)
    page.locator(".st-key-task_list .task").nth(3).click()
    expect(page).to_have_url(re.compile("task=[0-9]+"))
    settle(page)
    page.reload()  # the bar and the task are in the link
    settle(page)
    expect(page.locator('.st-key-task_list .task[aria-pressed="true"]')).to_have_count(1)
    expect(page.locator(".st-key-task_list .task").nth(3)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(HISTOGRAM).first).to_be_attached()
    page.get_by_role("button", name="Show by percentile").click()
    range_text.wait_for(state="detached")


def test_a_testbed_is_kept_and_brought_in_and_two_settings_are_compared(page, app: str, tmp_path: Path) -> None:
    open_page(page, app, "?n_tasks=100")
    files = {}
    page.get_by_role("button", name="Save as testbed").click()
    for name in ("Parquet", "CSV", "JSON"):
        with page.expect_download() as caught:
            page.get_by_role("button", name=name, exact=True).click()
        files[name] = tmp_path / caught.value.suggested_filename
        caught.value.save_as(files[name])
    rows = list(csv.DictReader(io.StringIO(files["CSV"].read_text())))
    assert list(rows[0]) == ["task", "variance", "labels", "image_id", "support"]
    assert len(rows) == 100 * 5 * (5 + 10)
    tasks = json.loads(files["JSON"].read_text())
    assert len(tasks) == 100
    assert [len(tasks[0]["Support"]), len(tasks[0]["Support"][0]), len(tasks[0]["Query"][0])] == [5, 5, 10]
    assert len(pd.read_parquet(files["Parquet"])) == 100
    page.get_by_role("button", name="Save testbed").click()
    page.get_by_text(re.compile(r"Saved .*100 tasks")).wait_for()
    page.keyboard.press("Escape")

    page.get_by_text("Import a testbed").click()
    page.locator('[data-testid="stFileUploader"] input').set_input_files(files["CSV"])
    page.get_by_text("100 tasks read: 5 classes each, with images").wait_for()
    broken = tmp_path / "broken.csv"
    lines = files["CSV"].read_text().splitlines()
    broken.write_text("\n".join([*lines[:3], lines[3].replace(",True", ",perhaps"), *lines[4:]]))
    page.locator('[data-testid="stFileUploader"] input').set_input_files(broken)
    page.get_by_text("Row 4: support must be True or False. Got 'perhaps'").wait_for()

    page.get_by_test_id("stSidebar").get_by_text("Compare with", exact=True).click()
    slider(page, "Semantic weight α (B)").wait_for(state="attached")
    expect(page).to_have_url(re.compile("compare=true"))
    settle(page)
    second = page.get_by_role("option", name=re.compile("^B: "))

    def open_menu() -> None:  # a late drawing closes it
        page.locator(".st-key-browse input").click()
        expect(second).to_be_visible(timeout=5_000)

    eventually(page, open_menu)
    second.click()
    expect(page).to_have_url(re.compile("browse=second"))
    settle(page)
    page.get_by_text(re.compile(r"Coarsity [\d.]+: mean squared")).wait_for()
