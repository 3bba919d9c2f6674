"""The page Confusion without a browser: every section, datasets that lack something, runs, bad input."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.datasets.saved import save_dataset
from fsviz.studies import confusion as study
from fsviz.ui.parts import answers
from tests.studies.toy_dataset import make_toy, save_toy_features
from tests.ui.pages import open_link


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture
def toy(home):
    toy = make_toy(backbones=("alpha_net", "beta_net"), noise=1.5)
    splits = {"train": np.arange(10), "test": np.arange(10, 16), "one": np.array([3])}
    return save_dataset(replace(toy, splits=splits), overwrite=True)


open_page = partial(open_link, "confusion")


def texts(page: AppTest) -> str:
    return "\n".join([m.value for m in (*page.markdown, *page.caption, *page.info)])


def answer(page: AppTest) -> str:
    return next(m.value for m in page.markdown if m.value.startswith("**") and "features." in m.value)


def test_the_demo_opens_with_the_answer_its_graph_and_the_images_of_the_pair(home) -> None:
    page = open_page("demo")
    assert not page.metric
    graph = study.class_graph({"dataset": "demo", "split": "test"})
    weights = graph.edges()[2]
    errors = study.pair_errors({"dataset": "demo", "split": "test"})
    first = study.ranked_pairs(graph, errors).iloc[0]
    names = [graph.row_names[int(first[side])] for side in ("i", "j")]
    error = f"{first['error']:.1f} ± {first['error_ci95']:.1f}%"
    assert answer(page).startswith(
        f"**Most confused: {names[0]} and {names[1]} ({error} errors in 2-way 5-shot tasks).**"
    )
    assert f"mean over 435 pairs: {np.mean(weights):.2f} ± 0.05 bits. Split test, EfficientNet" in answer(page)
    assert f"**Most confused pair** · {first['error']:.1f}% errors, rank 1 of 435; {first['value']:.2f} bits" in texts(
        page
    )
    assert "Errors: ProtoNet, 100 2-way 5-shot tasks of each pair with 10 queries per class" in texts(page)
    table = page.dataframe[0].value
    assert table["error"].is_monotonic_decreasing and table["error"].iloc[0] == pytest.approx(first["error"])
    page.selectbox(key="pairs_by").set_value("similarity").run()
    assert answer(page).startswith("**Largest overlap: ") and page.dataframe[0].value["value"].is_monotonic_decreasing
    page.selectbox(key="pairs_by").set_value("error").run()
    assert len(page.get("echarts_chart")) == 1
    assert "confusion demo" in page.code[0].value
    assert "Louvain runs), 96 images" in texts(page)
    page.slider(key="edges").set_value(10).run()
    assert not page.error and "The 10 most similar of 435 pairs".lower() in texts(page).lower()
    page.multiselect(key="classes").set_value(["tiger"]).run()
    place = graph.row_names.index("tiger")
    nearest = graph.row_names[int(np.nanargmax(errors.graph.weights[place]))]
    assert "**Most confused with tiger**" in texts(page)
    assert page.dataframe[0].value["b"].iloc[0] == nearest
    page.multiselect(key="classes").set_value(["tiger", "lemon"]).run()
    assert "**tiger** and **lemon**" in texts(page)
    rank = 1 + int((weights > graph.weights[place, graph.row_names.index("lemon")]).sum())
    assert "**Selected pair** · " in texts(page) and f"rank {rank} of 435" in texts(page)


def test_every_section_of_a_dataset_with_splits_and_two_backbones(toy) -> None:
    page = open_page("toy")
    assert any("24 images" in m.value for m in page.markdown)
    page.segmented_control(key="show").set_value("Heat map").run()
    assert not page.error and len(page.get("plotly_chart")) == 1
    page.segmented_control(key="show").set_value("Training classes").run()
    assert not page.error and len(page.get("echarts_chart")) == 2
    for title in ("One-to-one", "One training class, several test classes", "One test class, several training classes"):
        assert title in texts(page)
    assert "--base train" in page.code[0].value and "includes the split of each class" in texts(page)
    for kind in ("cosine", "lin", "error"):
        page.selectbox(key="likeness").set_value(kind).run()
        assert not page.error and not page.exception and "nan" not in texts(page).lower(), kind


def test_one_control_compares_with_backbones_and_similarities(toy) -> None:
    page = open_page("toy")
    titles = page.selectbox(key="versus").options
    assert titles[:2] == ["nothing", "beta_net features"]  # the other backbone comes first
    assert "Class overlap (Louvain)" not in titles and "Cosine of mean features, beta_net" in titles
    first = study.class_graph({"dataset": "toy", "backbone": "alpha_net", "split": "test"})
    for versus in ("confusion@beta_net", "cosine@alpha_net", "error@beta_net", "lin"):
        page.selectbox(key="versus").set_value(versus).run()
        assert not page.error and not page.exception, versus
        kind, _, backbone = versus.partition("@")
        second = {"dataset": "toy", "split": "test", "likeness": kind, "backbone": backbone or "alpha_net"}
        compared = study.compare(first, study.class_graph(second))
        assert answer(page).startswith(f"**{study.describe_comparison(compared)}**".replace("_", "\\_")), versus
        assert len(page.get("plotly_chart")) == 1 and not page.get("echarts_chart")
        command = page.code[0].value
        assert ("--versus-backbone beta_net" in command) == (backbone == "beta_net")
        assert (f"--versus {kind}" in command) == (kind != "confusion")
    page.selectbox(key="versus").set_value("").run()
    assert "--versus" not in page.code[0].value and len(page.get("echarts_chart")) == 1


def test_errors_of_a_run_can_be_compared_with(toy) -> None:
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet"], "device": "cpu"}
    run = jobs.run_in_foreground(
        {**spec, "sampler": {"n_way": 3, "n_shot": 1, "n_query": 3, "n_tasks": 60, "split": "test"}}
    )
    page = open_page("toy", versus=f"run@{run.id}/0")
    assert not page.toast and "Errors in a run: rank correlation" in answer(page)
    assert page.selectbox(key="versus").options[-1].startswith("Errors of ProtoNet on alpha_net")


def test_a_benchmark_without_images_is_compared_by_semantic_distance(home) -> None:
    page = open_page("mini_imagenet", show="Heat map")
    assert "**Semantically closest: " in texts(page) and "Closeness (Jiang-Conrath), mean over 190 pairs" in texts(page)
    assert "No features: showing semantic distance." in texts(page)
    assert "--likeness jiang_conrath" in page.code[0].value
    page.segmented_control(key="show").set_value("Images").run()
    assert not page.error and "has no features, so no images" in page.info[0].value
    page.segmented_control(key="show").set_value("Training classes").run()
    assert not page.error and len(page.get("echarts_chart")) == 2
    page = open_page("dtd")
    assert "has no features" in page.info[0].value and not page.get("echarts_chart")


def test_impossible_settings_are_one_sentence_and_its_advice_helps(home) -> None:
    toy = make_toy(small_class=2)
    page = open_page("toy")  # classes of 24 and of 3 images lower k
    assert "mean over 120 pairs" in texts(page) and "Graphs keep 5 to 9 edges per image: at most a fifth" in texts(page)
    page = open_page("toy", fine=False, preprocess="sqrt_center")
    assert "must not be negative" in page.error[0].value and "plain" in page.error[0].value
    page.selectbox(key="preprocess").set_value("plain").run()
    assert not page.error and answer(page)
    save_dataset(replace(toy, splits={"test": np.arange(15), "one": np.array([15])}), overwrite=True)
    page = open_page("toy", fine=False, split="one")
    assert "needs at least 2 classes" in page.error[0].value
    page.selectbox(key="split").set_value("test").run()
    assert not page.error and answer(page)
    save_toy_features(toy, "flat", spoil=lambda values: values.fill(2.0))
    page = open_page("toy", fine=False, backbone="flat")
    assert "same features" in page.error[0].value
    page.selectbox(key="backbone").set_value("alpha_net").run()
    assert not page.error and answer(page)


def test_a_long_computation_is_a_run_with_a_preview(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WAIT", 0.0)
    page = open_page("toy")
    assert "Full run: 15 pairs of classes" in texts(page)
    assert answer(page).startswith("**Most confused: ") and "Preview until the run below" in answer(page)
    assert any(button.label == "Run" for button in page.button)
    jobs.run_in_foreground({"study": "confusion", "dataset": "toy", "backbone": "alpha_net", "split": "test"})
    page.run()
    assert answer(page).startswith("**Most confused: ") and "Preview" not in answer(page) and not page.error
