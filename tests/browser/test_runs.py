"""The page Runs in a real browser: the first run by a button, comparison, exports, damage and recovery."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serving, settle
from tests.browser.digits_workspace import make_digits_workspace


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_digits_workspace(tmp_path_factory.mktemp("runs") / "home")


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[str]:
    with serving(home) as url:
        yield url


@pytest.fixture
def workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(home))
    return home


def test_an_empty_workspace_explains_and_one_click_makes_the_first_run(page, app: str, workspace) -> None:
    from fsviz import jobs

    for run in jobs.list_runs():  # of a first try of this test
        jobs.cancel(run.id)
        jobs.delete(run.id)
    page.goto(f"{app}/Runs?dataset=digits")
    settle(page)
    expect(page.get_by_text("No evaluation has results yet.")).to_be_visible()
    expect(page.get_by_text(re.compile("Published numbers, not computed here"))).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(1)
    page.get_by_role("button", name="Start a first run").click()
    expect(page.get_by_role("heading", name="Is the difference real?", exact=True)).to_be_visible()
    expect(page.get_by_text("Most accurate")).to_be_visible()
    table = page.locator(".results table").first
    expect(table.locator("tbody tr:not(.published):not(.divider)")).to_have_count(5)
    expect(table.locator("b").first).to_be_attached()
    expect(table.get_by_text(re.compile("Published numbers, not computed here"))).to_be_visible()


def test_exports_are_whole_and_the_report_opens_without_a_network(page, browser, app: str, workspace, tmp_path) -> None:
    from fsviz import jobs

    page.goto(f"{app}/Runs?dataset=digits")
    expect(page.get_by_text("Most accurate")).to_be_visible()
    settle(page)
    files = {}
    for label in ("CSV", "JSON", "LaTeX", "Markdown", "Figures", "HTML report"):
        with page.expect_download() as download:
            page.get_by_role("button", name=label, exact=True).click()
        files[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[label])
    (run,) = jobs.list_runs()
    expected = sorted(round(r["accuracy"], 2) for r in run.summary["results"])
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


def test_a_damaged_run_is_one_row(page, app: str, workspace) -> None:
    from fsviz import jobs

    (run,) = (run for run in jobs.list_runs() if run.state == "finished")
    damaged = workspace / "runs" / "20260101-000000-dead"
    damaged.mkdir(exist_ok=True)
    (damaged / "spec.json").write_text("{")
    page.goto(f"{app}/Runs?dataset=digits")
    settle(page)
    expect(page.get_by_text("Most accurate")).to_be_visible()
    assert {r.id: r.state for r in jobs.list_runs()} == {run.id: "finished", damaged.name: "damaged"}
    jobs.delete(damaged.name)
