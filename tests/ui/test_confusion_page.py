"""The page of class confusion without a browser: every section, datasets that lack something, runs, bad input."""

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
from tests.ui.opening import open_link


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture
def toy(home):
    toy = make_toy(backbones=("alpha_net", "beta_net"), noise=1.5)
    splits = {"train": np.arange(10), "test": np.arange(10, 16), "one": np.array([3])}
    return save_dataset(replace(toy, splits=splits), overwrite=True)


open_page = partial(open_link, "confusion")


def words(page: AppTest) -> str:
    return "\n".join([m.value for m in (*page.markdown, *page.caption, *page.info)])


def test_the_demo_opens_with_its_graph_and_the_images_of_the_pair_at_the_top(home) -> None:
    page = open_page("demo")
    assert [m.label for m in page.metric] == ["Classes", "Mean confusion", "Most confused", "Communities of classes"]
    assert page.metric[0].value == "30" and page.metric[1].value == "0.18 ± 0.05 bits"
    assert page.metric[2].delta == "taxi and fire engine"
    assert len(page.get("echarts_chart")) == 1
    assert "confusion demo" in page.code[0].value
    assert "runs of Louvain's algorithm on 96 images" in words(page)
    page.slider(key="edges").set_value(10).run()
    assert not page.error and "The 10 most alike of 435 pairs" in words(page)
    page.multiselect(key="classes").set_value(["tiger"]).run()
    assert "**tiger** is most alike to" in words(page)
    page.multiselect(key="classes").set_value(["tiger", "lemon"]).run()
    assert "**tiger** and **lemon**" in words(page)


def test_every_section_of_a_dataset_with_splits_and_two_backbones(toy) -> None:
    page = open_page("toy")
    assert any("24 images" in m.value for m in page.markdown)
    page.segmented_control(key="show").set_value("Heat map").run()
    assert not page.error and len(page.get("plotly_chart")) == 1
    page.segmented_control(key="show").set_value("Base classes").run()
    assert not page.error and len(page.get("echarts_chart")) == 2
    for title in ("Perfect matches", "Split base classes", "Split novel classes"):
        assert title in words(page)
    assert "--base train" in page.code[0].value and "which classes are base" in words(page)
    page.segmented_control(key="show").set_value("Compare").run()
    assert "--base" not in page.code[0].value
    for title in page.selectbox(key="versus").options:
        kind = next(kind for kind, likeness in study.SIMILARITIES.items() if likeness.title == title)
        page.selectbox(key="versus").set_value(kind).run()
        assert not page.error and not page.exception, kind
        assert "Pearson's correlation" in words(page)
        assert ("--versus-backbone" if kind == "confusion" else f"--versus {kind}") in page.code[0].value
    for kind in ("cosine", "lin", "error"):
        page.selectbox(key="likeness").set_value(kind).run()
        assert not page.error and not page.exception and "NaN" not in words(page), kind
        assert "nan" not in "".join(str(m.value) for m in page.metric)


def test_mistakes_of_a_run_can_be_compared_with(toy) -> None:
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet"], "device": "cpu"}
    jobs.run_in_foreground({**spec, "sampler": {"n_way": 3, "n_shot": 1, "n_query": 3, "n_tasks": 60, "split": "test"}})
    page = open_page("toy", show="Compare", versus="run")
    assert "Pearson's correlation" in words(page)
    assert page.selectbox(key="versus_run").options[0].startswith("ProtoNet on alpha_net")


def test_a_benchmark_without_images_is_compared_by_meaning(home) -> None:
    page = open_page("mini_imagenet", show="Heat map")
    assert page.metric[1].label == "Mean closeness (Jiang-Conrath)"
    assert "has no features here" in page.info[0].value
    assert "--likeness jiang_conrath" in page.code[0].value
    page.segmented_control(key="show").set_value("Images").run()
    assert not page.error and "cannot be looked into" in page.info[1].value
    page.segmented_control(key="show").set_value("Base classes").run()
    assert not page.error and len(page.get("echarts_chart")) == 2
    page = open_page("dtd")
    assert "has no features" in page.info[0].value and not page.metric


def test_what_cannot_be_is_one_sentence_and_doing_what_it_says_helps(home) -> None:
    toy = make_toy(small_class=2)
    page = open_page("toy")  # classes of 24 and of 3 images: k gives way to what they allow
    assert page.metric[0].value == "16" and "room for 13 edges per image" in words(page)
    page = open_page("toy", fine=False, preprocess="sqrt_center")
    assert "must not be negative" in page.error[0].value and "plain" in page.error[0].value
    page.selectbox(key="preprocess").set_value("plain").run()
    assert not page.error and page.metric
    save_dataset(replace(toy, splits={"test": np.arange(15), "one": np.array([15])}), overwrite=True)
    page = open_page("toy", fine=False, split="one")
    assert "needs at least 2 classes" in page.error[0].value
    page.selectbox(key="split").set_value("test").run()
    assert not page.error and page.metric
    save_toy_features(toy, "flat", spoil=lambda values: values.fill(2.0))
    page = open_page("toy", fine=False, backbone="flat")
    assert "same features" in page.error[0].value
    page.selectbox(key="backbone").set_value("alpha_net").run()
    assert not page.error and page.metric


def test_what_takes_long_is_a_run_and_its_graph_is_shown(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WAIT", 0.0)
    page = open_page("toy")
    assert "Full run: 15 pairs of classes" in words(page) and "until then" in words(page)
    assert page.metric[1].label == "Mean cosine of mean features"
    assert any(button.label == "Run" for button in page.button)
    jobs.run_in_foreground({"study": "confusion", "dataset": "toy", "backbone": "alpha_net", "split": "test"})
    page.run()
    assert page.metric[1].label == "Mean confusion" and not page.error
