"""The pages Evaluate and Runs in a real browser: the first run by a button, exports, a run to its end, cancel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, serving, settle
from tests.browser.digits_workspace import make_digits_workspace


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_digits_workspace(tmp_path_factory.mktemp("evaluate") / "home")


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[str]:
    """An app whose workspace has features of scikit-learn's digits."""
    with serving(home) as url:
        yield url


@pytest.fixture
def workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same workspace for this process, to look at what the app did; no run outlives the test."""
    from fsviz import jobs

    monkeypatch.setenv("FSVIZ_HOME", str(home))
    yield home
    for run in jobs.list_runs():
        if run.active:
            jobs.cancel(run.id)


SMALL = "dataset=digits&n_way=3&n_shot=2&n_query=4&n_tasks=100"


def start(page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def test_live_progress_cancel_and_a_second_session(page, browser, app: str, workspace: Path) -> None:
    from fsviz import jobs

    second_tab = browser.new_page()  # somebody else, on another page, sees the same run
    second_tab.goto(f"{app}/runs?dataset=digits")
    settle(second_tab)
    page.goto(f"{app}/evaluate?{SMALL.replace('100', '100000')}&methods=TIM&tim_steps=100")
    settle(page)
    start(page)
    expect(page.get_by_text("Accuracy so far")).to_be_visible()
    expect(second_tab.get_by_text("Accuracy so far")).to_be_visible()
    (run,) = (run for run in jobs.list_runs() if run.active)
    expect(second_tab.get_by_text(run.id).first).to_be_attached()
    second_tab.get_by_role("button", name="Cancel", exact=True).first.click()
    assert jobs.wait(run.id, PATIENCE / 1000).state == "cancelled"
    second_tab.get_by_role("button", name="Resume", exact=True).first.wait_for()  # where Cancel was
    second_tab.close()
    expect(page.get_by_text(re.compile("was cancelled"))).to_be_visible()
    assert jobs.status(run.id).n_done > 0
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_text("Accuracy so far")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).first.click()
    expect(page.get_by_role("button", name="Resume", exact=True).first).to_be_visible()
    jobs.wait(run.id, PATIENCE / 1000)


def test_one_click_makes_the_first_run_whose_exports_are_whole_and_ask_no_network(
    page, browser, app: str, workspace: Path, tmp_path: Path
) -> None:
    from fsviz import jobs

    for run in jobs.list_runs():  # of the test above, or of a first try of this one
        jobs.cancel(run.id)
        jobs.delete(run.id)
    page.goto(f"{app}/runs?dataset=digits")
    settle(page)
    expect(page.get_by_text("Handwritten digits has no results yet.")).to_be_visible()
    expect(page.get_by_text(re.compile("not computed here"))).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(1)
    page.locator(".st-key-first_run button").click()
    expect(page.locator(".st-key-fsviz_answer")).to_contain_text(re.compile(r"\d+\.\d ± \d+\.\d points"))
    expect(page.get_by_role("heading", name="Results", exact=True)).to_be_visible()
    table = page.locator(".results table").first
    expect(table.locator("tbody tr:not(.published):not(.divider)")).to_have_count(5)
    expect(table.locator("b").first).to_be_attached()
    expect(table.get_by_text(re.compile("Published numbers, not computed here"))).to_be_visible()
    (run,) = jobs.list_runs()
    run = jobs.wait(run.id, PATIENCE / 1000)
    expected = sorted(round(r["accuracy"], 2) for r in run.summary["results"])
    for value in expected:  # of the run as a whole
        expect(table).to_contain_text(f"{value:.2f}")
    settle(page)
    files = {}
    for label in ("CSV", "JSON", "LaTeX", "Markdown", "Figures", "HTML report"):
        with page.expect_download() as download:
            page.get_by_role("button", name=label, exact=True).click()
        files[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[label])
    body = json.loads(files["JSON"].read_text())
    assert sorted(round(r["accuracy"], 2) for r in body["results"]) == expected
    assert files["CSV"].read_text().count("\n") == 6
    for name in ("LaTeX", "Markdown"):
        assert all(f"{value:.2f}" in files[name].read_text() for value in expected)
    assert all(figure["data"] and figure["layout"] for figure in json.loads(files["Figures"].read_text()).values())
    report = browser.new_page()
    outside = []
    report.on("request", lambda request: outside.append(request.url))
    report.goto(files["HTML report"].as_uri())
    report.wait_for_selector(".js-plotly-plot .main-svg")
    expect(report.locator(".js-plotly-plot").nth(1)).to_be_attached()
    assert [url for url in outside if not url.startswith(("file:", "data:", "blob:"))] == []
    report.close()


def test_a_run_from_start_to_finish(page, app: str, workspace: Path) -> None:
    from fsviz import jobs

    page.goto(f"{app}/evaluate?{SMALL}&methods=ProtoNet&methods=SimpleShot")
    settle(page)
    expect(page.get_by_text(re.compile("Full run: 2 methods × 100 tasks"))).to_be_visible()
    before = {run.id for run in jobs.list_runs()}
    start(page)
    expect(page.get_by_text(re.compile("Full run finished"))).to_be_visible()  # in the place of the preview
    expect(page.get_by_text(re.compile("Preview: "))).to_have_count(0)
    (run,) = (run for run in jobs.list_runs() if run.id not in before)
    assert run.state == "finished" and [r["method"] for r in run.summary["results"]] == ["protonet", "simpleshot"]
    best = max(run.summary["results"], key=lambda r: r["accuracy"])
    half = best["ci95_classes"] if best["ci95_classes"] is not None else best["ci95_images"]
    expect(page.get_by_text(f"{best['accuracy']:.1f} ± {half:.1f}%").first).to_be_visible()
    page.get_by_role("link", name=re.compile("Compare methods in Runs")).click()
    expect(page.get_by_role("heading", name="Is one method significantly better?")).to_be_visible()
