"""The page of predicted accuracy without a browser: settings, sections, runs, and what is not defined."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.studies import prediction, sweep
from fsviz.ui.parts import answers
from tests.studies.toy_dataset import make_toy, save_toy_features

APP = Path(__file__).resolve().parent.parent.parent / "app.py"


@pytest.fixture
def open_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))

    def open_it(dataset: str = "toy", **query: str) -> AppTest:
        page = AppTest.from_file(str(APP), default_timeout=600)
        page.switch_page("pages/predict_accuracy.py")
        for name, value in {"dataset": dataset, **query}.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception, [e.message for e in page.exception]
        return page

    return open_it


def figure(page: AppTest, which: int) -> dict:
    return json.loads(page.get("plotly_chart")[which].proto.spec)


def texts(page: AppTest) -> str:
    kinds = (page.caption, page.markdown, page.info, page.error, page.metric, page.subheader)
    tooltips = [caption.help for caption in page.caption if caption.help]
    return " ".join([*(str(element.value) for kind in kinds for element in kind), *tooltips])


def assert_no_nan(page: AppTest) -> None:
    page_text = texts(page) + " ".join(chart.proto.spec for chart in page.get("plotly_chart"))
    assert not re.findall(r".{40}\bnan\b.{20}", page_text.lower())


@pytest.mark.parametrize("setting", ["supervised", "semi", "unsupervised"])
def test_a_setting_shows_its_scatter_and_all_its_correlations_at_once(open_page, setting: str) -> None:
    make_toy(noise=2.0)
    page = open_page(setting=setting, n_tasks="50", n_way="3")
    assert not page.error, [e.value for e in page.error]
    points = next(trace for trace in figure(page, 0)["data"] if trace["mode"] == "markers")
    assert len(points["x"]["bdata"] if isinstance(points["x"], dict) else points["x"]) > 0
    bars = figure(page, 1)["data"][0]
    assert len(bars["y"]) == {"supervised": 6, "semi": 7, "unsupervised": 4}[setting]
    assert "Pearson's r; 95% CI over classes." in texts(page)
    assert ("mean adjusted Rand index" in texts(page)) == (setting == "unsupervised")
    assert ("Predicted accuracy is off by" in texts(page)) == (setting == "semi")
    assert_no_nan(page)


def test_bars_have_the_sign_of_their_number_and_those_that_need_classes_are_hatched(open_page) -> None:
    make_toy(noise=2.0)
    page = open_page(n_tasks="50", n_way="3")
    chart = figure(page, 1)
    bars = chart["data"][0]
    values = np.frombuffer(base64.b64decode(bars["x"]["bdata"]), dtype=bars["x"]["dtype"])
    labels = [note["text"] for note in chart["layout"]["annotations"]]
    assert [label.rpartition("r = ")[2] for label in labels] == [f"{value:.2f}" for value in values]
    assert min(values) < 0 < max(values)
    hatched = [name for (name, *_), shape in zip(bars["customdata"], bars["marker"]["pattern"]["shape"]) if shape]
    assert sorted(hatched) == ["class_overlap", "coarsity"]


def test_every_section_opens(open_page) -> None:
    make_toy(noise=2.0)
    settings = {"n_tasks": "50", "n_way": "3", "n_shot": "2", "n_query": "6"}
    page = open_page(**settings, show="Detect hard tasks")
    assert not page.error, [e.value for e in page.error]
    assert "The halves share no class." in texts(page) and "Predicted hard" in texts(page)
    for truth, called in (("hard", "easy"), ("easy", "easy"), ("hard", "hard"), ("easy", "hard")):
        page = open_page(**settings, show="Detect hard tasks", called=f"{truth}_called_{called}")
        assert f"Actually {truth}, predicted {called}: " in texts(page) and not page.toast
        assert page.query_params["called"] == f"{truth}_called_{called}"
    page.slider(key="recall").set_value(100).run()
    assert not page.exception and page.query_params["recall"] == "100"
    assert "--question hard" in page.code[0].value and "--recall 100" in page.code[0].value
    assert "with support labels" not in texts(page)
    page = open_page(**settings, setting="unsupervised", show="Detect hard tasks")
    assert "with support labels, which the measures do not use" in texts(page)
    page = open_page(**settings, show="Sources of variance")
    assert "Share of the variance" in texts(page) and "--question spread" in page.code[0].value
    page = open_page(**settings, show="What to label next")
    assert "--question labelling" in page.code[0].value
    assert "least confident vs random" in texts(page)
    assert_no_nan(page)


def test_curves_are_a_preview_until_their_run_is_started_and_finished(open_page, monkeypatch) -> None:
    make_toy(noise=2.0)
    settings = {"n_tasks": "50", "n_way": "3", "n_shot": "2", "n_query": "6"}
    spec = {"dataset": "toy", "backbone": "alpha_net", "split": "test", "setting": "supervised"}
    spec |= {name: int(value) for name, value in settings.items()}
    curve = sweep.sweep(prediction.STUDY, spec, "n_shot")
    monkeypatch.setattr(answers, "WAIT", sweep.work(curve).seconds / 2)
    page = open_page(**settings, show="Shots, ways, queries", setting="supervised")
    assert [button.label for button in page.button] == ["Run"]
    assert "Full run: 50 tasks per point" in texts(page) and "This page shows a preview of 25" in texts(page)
    assert "25 tasks per point" in texts(page) and len(page.get("plotly_chart")) == 4
    page.button[0].click().run()
    assert not page.exception and "Run" not in [button.label for button in page.button]
    (run,) = jobs.list_runs()
    assert run.spec.items() >= curve.items()
    assert jobs.wait(run.id, 600).state == "finished"
    page.run()
    assert not page.exception and not page.error
    assert "**Mean accuracy**" in texts(page) and "50 tasks per point" in texts(page)
    assert len(page.get("plotly_chart")) == 4
    curves = [trace["name"] for trace in figure(page, 2)["data"] if trace["mode"] == "lines+markers"]
    assert curves == [
        "Coarsity",
        "Class overlap (Louvain)",
        "Support training loss",
        "Support separation (cosine)",
        "Cluster overlap (Davies–Bouldin)",
        "Graph connectivity (N-th eigenvalue)",
    ]
    assert_no_nan(page)


def test_undefined_numbers_are_explained(open_page) -> None:
    toy = make_toy(noise=2.0)
    page = open_page(setting="supervised", n_tasks="50", n_way="3", n_shot="1", measure="davies_bouldin")
    assert "undefined for 1-shot tasks" in texts(page) + figure(page, -1)["layout"]["annotations"].__repr__()
    assert "undefined for 1-shot tasks" in texts(page)
    assert list(page.dataframe[0].value["title"]) == [
        "Coarsity",
        "Class overlap (Louvain)",
        "Support training loss",
        "Support separation (cosine)",
        "Graph connectivity (N-th eigenvalue)",
    ]
    assert_no_nan(page)

    def flatten(values: np.ndarray) -> None:
        values[:] = 1.0

    save_toy_features(toy, "alpha_net", spoil=flatten)
    page = open_page(setting="semi", n_tasks="50", n_way="3")
    assert not page.error, [e.value for e in page.error]
    assert "Not measured: Class overlap (Louvain): All images of these 16 classes have the same features" in texts(page)
    assert_no_nan(page)


@pytest.mark.parametrize("n_tasks", ["1", "3"])
def test_very_few_tasks_are_shown_without_correlations(open_page, n_tasks: str) -> None:
    make_toy(noise=2.0)
    for show in ("Task", "Shots, ways, queries", "Sources of variance", "What to label next", "Detect hard tasks"):
        page = open_page(n_tasks=n_tasks, n_way="3", n_query="6", show=show)
        tasks = rf"{n_tasks} 3-way 5-shot task{'s' * (n_tasks != '1')}, "
        assert tasks in texts(page).replace("\\", "") and "mean accuracy of logistic regression" in texts(page)
        assert ("A correlation needs at least 4 tasks" in texts(page)) == (show == "Shots, ways, queries")
        assert_no_nan(page)


def test_impossible_settings_are_one_sentence(open_page) -> None:
    make_toy(noise=2.0)
    page = open_page(n_tasks="50", n_way="3", n_query="60")
    assert "images with features" in page.error[0].value
    page = open_page(n_tasks="50", n_way="9", show="Detect hard tasks")
    assert "needs at least 18 classes" in page.error[0].value
    page = open_page("tiered_imagenet")
    assert "has no features" in page.info[0].value
