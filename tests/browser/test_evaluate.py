"""The page Evaluate in a real browser: a first look at once, a run to its end, cancel, other people's runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, eventually, serving, settle
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
    page.get_by_role("button", name="Start the run").click()


def test_the_demo_shows_a_real_result_at_once(page, app: str) -> None:
    page.goto(f"{app}/Evaluate")
    settle(page)
    expect(page.get_by_text("First look: 200 tasks")).to_be_visible()
    value = page.locator('[data-testid="stMetricValue"]').first
    accuracy = eventually(page, lambda: float(re.match(r"([\d.]+) ±", value.inner_text())[1]))
    assert 20 < accuracy < 99.5
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length >= 2")
    expect(page.get_by_text("What gets confused")).to_be_visible()
    expect(page.locator(".tile img").nth(10)).to_be_attached()  # the images behind the mistakes


def test_a_run_from_start_to_finish(page, app: str, workspace: Path) -> None:
    from fsviz import jobs

    page.goto(f"{app}/Evaluate?{SMALL}&methods=ProtoNet&methods=SimpleShot")
    settle(page)
    expect(page.get_by_text("from a quick trial")).to_be_visible()
    before = {run.id for run in jobs.list_runs()}
    start(page)
    expect(page.get_by_text(re.compile("Run .* is finished"))).to_be_visible()
    (run,) = (run for run in jobs.list_runs() if run.id not in before)
    assert run.state == "finished" and [r["method"] for r in run.summary["results"]] == ["protonet", "simpleshot"]
    best = max(run.summary["results"], key=lambda r: r["accuracy"])
    expect(page.get_by_text(f"{best['accuracy']:.1f} ± {best['ci95']:.1f}%").first).to_be_visible()
    page.get_by_role("link", name=re.compile("whole comparison")).click()
    expect(page.get_by_role("heading", name="What came out, and is the difference real?")).to_be_visible()


def test_live_progress_cancel_and_a_second_session(page, browser, app: str, workspace: Path) -> None:
    from fsviz import jobs

    page.goto(f"{app}/Evaluate?{SMALL.replace('100', '10000')}&methods=TIM&tim_steps=1000")
    settle(page)
    start(page)
    expect(page.get_by_text("Accuracy so far")).to_be_visible()
    other = browser.new_page()  # somebody else, on another page, sees the same run
    other.goto(f"{app}/Runs")
    expect(other.get_by_text("Accuracy so far")).to_be_visible()
    (run,) = (run for run in jobs.list_runs() if run.active)
    expect(other.get_by_text(run.id).first).to_be_attached()
    other.get_by_role("button", name="Cancel", exact=True).first.click()
    assert jobs.wait(run.id, PATIENCE / 1000).state == "cancelled"
    other.close()
    expect(page.get_by_text(re.compile("was cancelled"))).to_be_visible()
    assert jobs.status(run.id).n_done > 0


def test_too_many_shots_are_named_and_the_largest_that_fits_is_offered(page, app: str) -> None:
    page.goto(f"{app}/Evaluate?dataset=digits&n_shot=190&n_query=10&methods=ProtoNet")
    settle(page)
    expect(
        page.get_by_text(re.compile("has 174 images .* fewer than “Support images” . “Query images” = 200"))
    ).to_be_visible()
    page.get_by_role("button", name="Use what fits: “Support images” 164").click()
    expect(page.get_by_text("First look: 200 tasks")).to_be_visible()


def test_a_dataset_without_features_says_how_to_make_them(page, app: str) -> None:
    page.goto(f"{app}/Evaluate?dataset=tiered_imagenet")
    settle(page)
    expect(page.get_by_text(re.compile("comes without images"))).to_be_visible()
    assert page.get_by_role("button", name="Start the run").count() == 0
