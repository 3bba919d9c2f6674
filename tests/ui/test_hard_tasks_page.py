"""Page Hard supports without a browser: answer, filters, shapes of tasks, datasets without pixels or attributes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.datasets.saved import save_dataset
from fsviz.studies import stress_test
from fsviz.ui.parts import answers
from tests.studies.shifted_dataset import make_shifted
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import in_workspace, link_of, open_link

SMALL = {"n_way": "3", "n_shot": "1", "n_query": "4", "n_tasks": "50"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the dataset `shifted`, for tests that change nothing: what the page computes of it is computed once."""
    with in_workspace(tmp_path_factory) as home:
        make_shifted()
    return home


@pytest.fixture
def shifted(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(workspace))


@pytest.fixture
def open_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))

    return partial(open_link, "hard_supports")


def assert_fine(page: AppTest) -> None:
    assert not page.exception, [e.message for e in page.exception]
    assert not page.error, [e.value for e in page.error]


def n_listed(page: AppTest) -> int:
    return len(page.dataframe[0].value)


def test_tasks_are_filtered_by_class_attribute_and_accuracy(open_page, shifted) -> None:
    page = open_page("shifted")
    assert n_listed(page) == 40 and any("200 of 200 tasks" in caption.value for caption in page.caption)
    assert any("tasks, hardest. " in caption.value for caption in page.caption)
    page.selectbox(key="task_order").set_value("drop").run()
    drop = page.dataframe[0].value["hard"] - page.dataframe[0].value["random"]
    assert drop.is_monotonic_increasing
    assert any("tasks, largest drop. " in caption.value for caption in page.caption)
    page.slider(key="between").set_value((0, 40)).run()
    assert_fine(page)
    assert (page.dataframe[0].value["hard"] <= 40).all()
    page.selectbox(key="explained_by_shifted").set_value("context").run()
    assert_fine(page)
    explained = page.dataframe[0].value["explained"]
    assert len(explained) and explained.str.startswith("context, ").all()
    page.selectbox(key="explained_by_shifted").set_value("any").run()
    page.multiselect(key="with_shifted_test").set_value(["kind 0", "kind 1"]).run()
    assert_fine(page)
    assert all("kind 0" in classes and "kind 1" in classes for classes in page.dataframe[0].value["classes"])
    page.slider(key="between").set_value((0, 1)).run()
    assert any("No task matches" in info.value for info in page.info)
    assert_fine(page)


def test_impossible_settings_are_one_sentence(open_page, shifted) -> None:
    page = open_page("shifted")
    page.number_input(key="n_shot").set_value(45).run()
    assert not page.exception
    assert "images with features" in page.error[0].value


def test_variable_tasks_and_every_section_without_pixels(open_page, shifted) -> None:
    page = open_page("shifted", **SMALL)
    assert any("has no pixels" in caption.value for caption in page.caption)
    page.selectbox(key="sampler").set_value("variable").run()
    assert_fine(page)
    page.selectbox(key="sampler").set_value("uniform").run()
    for section in ("Attribute shift", "Semantic distance", "Search methods", "Step size", "Other classifiers"):
        page.segmented_control(key="show").set_value(section).run()
        assert_fine(page)
        assert len(page.get("plotly_chart")) >= 2, section


def test_a_dataset_without_attributes_says_how_to_add_them(open_page) -> None:
    make_toy()
    page = open_page("toy")
    assert any("no attributes" in caption.value for caption in page.caption)
    page.segmented_control(key="show").set_value("Attribute shift").run()
    assert_fine(page)
    assert any("one column per attribute" in info.value for info in page.info)


def test_a_long_search_offers_a_run_and_shows_a_preview(open_page, shifted, monkeypatch) -> None:
    monkeypatch.setattr(answers, "WAIT", 1.0)
    page = open_page("shifted", search="fastdiffsel")
    page.select_slider(key="n_tasks").set_value(1000).run()
    assert_fine(page)
    assert any(button.label == "Run" for button in page.button)
    assert any("This page shows a preview of" in text.value for text in page.markdown)
    assert "Preview. " in answer(page) and not page.metric
    page.select_slider(key="n_tasks").set_value(50)
    page.selectbox(key="search").set_value("accuracy").run()
    assert not any(button.label == "Run" for button in page.button)
    page.selectbox(key="sampler").set_value("variable").run()  # large tasks take longer
    assert_fine(page)
    assert any(button.label == "Run" for button in page.button)
    assert "Preview by FastDiffSel (paper). " in answer(page)


def test_a_finished_run_is_shown(open_page) -> None:
    make_shifted()
    spec = {"dataset": "shifted", "backbone": "first", "n_way": 3, "n_shot": 1, "n_query": 4, "n_tasks": 50}
    run = jobs.run_in_foreground({"study": "support_sets", **spec, "search": "greedy"})
    page = open_page("shifted", **SMALL, search="greedy")
    assert not any(button.label == "Run" for button in page.button)
    numbers = jobs.results(run.id)
    cost = f"**Hard support sets cost {numbers['drop']:.1f} ± {numbers['drop_ci95']:.1f} points: "
    assert answer(page).startswith(f"{cost}{numbers['accuracy']['hard']:.1f}% vs {numbers['accuracy']['random']:.1f}% ")
    assert "50 3-way 1-shot tasks of split test" in answer(page) and "chance level: 33.3%" in answer(page)
    assert "Preview" not in answer(page)
    stress_settings = {"sources": ["first"], "backbones": ["first", "second"]}
    stress_settings["adaptations"] = [name for name in stress_test.ADAPTATIONS if name != stress_test.FULL]
    spec = {name: value for name, value in spec.items() if name != "backbone"}
    stressed = jobs.run_in_foreground({"study": "stress_test", **spec, **stress_settings, "search": "greedy"})
    page.query_params["stress_cell"] = "second tim"
    page.segmented_control(key="show").set_value("Other classifiers").run()
    assert_fine(page)
    _, random, hard = jobs.result(stressed.id).cell("first", "second", "tim")
    lost = int(np.argsort(hard - random, kind="stable")[0])  # the cells of the run lead to its tasks
    accuracies = f"{100 * random[lost]:.0f}% correct with random, {100 * hard[lost]:.0f}% with hard supports"
    assert f"**Task {lost}**: {accuracies}" in [m.value for m in page.markdown]


def caption(page: AppTest, words: str) -> str:
    return next(caption.value for caption in page.caption if words in caption.value)


def test_searches_are_compared_at_once_on_a_few_tasks_and_by_a_run_on_all(open_page, monkeypatch) -> None:
    make_shifted()
    monkeypatch.setattr(answers, "WAIT", 0.9)
    monkeypatch.setattr(answers, "AUTO_START", 0.0)
    page = open_page("shifted", **SMALL, show="Search methods")
    first = caption(page, "the same for all searches")
    assert first.startswith("50 tasks") and "accuracy search +" in first and "and greedy search" in first
    assert any(button.label == "Run on all tasks" for button in page.button)
    rare = caption(page, "Searched supports give")
    assert rare.startswith("2,000 random tasks, the 40 hardest of them") and "and 50 with hard" in rare
    commands = [block.value for block in page.code]
    assert any(" filtered shifted " in c and "--n-random 2000" in c for c in commands)
    spec = {"dataset": "shifted", "backbone": "first", "n_way": 3, "n_shot": 1, "n_query": 4, "n_tasks": 50}
    run = jobs.run_in_foreground({"study": "search_comparison", **spec})
    page.run()
    assert_fine(page)
    whole = caption(page, "the same for all searches")
    assert whole.startswith("50 tasks") and "Preview" not in whole
    assert not any(button.label == "Run on all tasks" for button in page.button)
    comparison_chart = next(chart for chart in page.get("plotly_chart") if "compared" in chart.proto.id)
    hard = next(row["accuracy"] for row in jobs.results(run.id)["rows"] if row["objective"] == "hard")
    assert f"{hard:.1f}" in comparison_chart.proto.spec


def test_a_slow_section_starts_its_run_once_and_shows_a_preview(open_page, monkeypatch) -> None:
    make_shifted()
    monkeypatch.setattr(answers, "AUTO_WAIT", 0.9)
    monkeypatch.setattr(jobs.local, "start", lambda **options: None)  # the run stays queued
    page = open_page("shifted", **SMALL, show="Search methods")
    (run,) = jobs.list_runs("search_comparison")
    assert run.state == "queued" and run.spec["n_tasks"] == 50
    assert "Preview: a run uses all 50 tasks" in caption(page, "the same for all searches")
    page.run()
    assert_fine(page)
    assert len(jobs.list_runs("search_comparison")) == 1
    monkeypatch.setattr(answers, "AUTO_START", 0.0)  # a run that takes longer is only offered
    open_page("shifted", **{**SMALL, "n_tasks": "100"}, show="Search methods")
    assert len(jobs.list_runs("search_comparison")) == 1


def test_queries_of_chosen_values_are_searched_and_are_in_the_link(shifted) -> None:
    page = link("shifted", n_tasks="50", show="Attribute shift", query_values=["snow", "sand"])
    assert page.selectbox(key="query_attribute").value == "context"  # what costs most
    assert page.query_params["query_values"] == ["snow", "sand"] and not page.toast
    restricted = {metric.label: metric.value for metric in page.metric}
    assert f": {restricted['Restricted queries, hard supports'].split()[0]}% vs " not in answer(page)
    assert "context snow or sand" in caption(page, "chooses among all other images")
    assert any("--value snow --value sand" in block.value for block in page.code)
    page.multiselect(key="query_values").set_value([]).run()
    assert_fine(page)
    assert any("Choose at least one value" in info.value for info in page.info) and link_of(page)["query_values"] == ""
    page.selectbox(key="query_attribute").set_value(page.selectbox(key="query_attribute").options[-1]).run()
    assert_fine(page)  # values of another attribute start over, from the most common one
    (usual,) = page.multiselect(key="query_values").value
    assert f"{usual}." in caption(page, "chooses among all other images") and "query_values" not in link_of(page)


def link(name: str, **query: str | list[str]) -> AppTest:
    return open_link("hard_supports", name, **query)


def texts(page: AppTest) -> str:
    return "\n".join(e.value for kind in (page.markdown, page.caption, page.subheader, page.warning) for e in kind)


def answer(page: AppTest) -> str:
    return next(m.value for m in page.markdown if " with random ones" in m.value)


def test_the_chosen_task_and_bar_are_in_the_link(shifted) -> None:
    page = link("shifted", n_tasks="50", task="7")
    assert "Task 7: three support sets" in texts(page) and page.query_params["task"] == "7"
    hard = page.dataframe[0].value["hard"]
    place = int(hard.iloc[0] // 5)
    page = link("shifted", n_tasks="50", accuracy_bar=f"hard-{place}")
    assert page.dataframe[0].value["hard"].between(5 * place, 5 * place + 5).all()
    assert f"{5 * place} to {5 * place + 5}%" in texts(page) and page.query_params["accuracy_bar"] == f"hard-{place}"
    page.button(key="all_bars").click().run()
    assert_fine(page)
    assert "accuracy_bar" not in page.query_params and len(page.dataframe[0].value) == 40
    link("shifted", n_tasks="50", task="9000", accuracy_bar="medium-3")  # impossible: the page opens all the same


def test_the_strips_show_the_selected_task_or_the_hardest_of_the_bar(open_page) -> None:
    page = open_page("demo", n_tasks="50")
    rows = page.dataframe[0].value

    def title() -> str:
        return next(m.value for m in page.markdown if m.value.startswith("**Task ") and "· random" in m.value)

    hardest = rows.sort_values(["hard", "task"]).iloc[0]
    assert title() == f"**Task {hardest['task']}, the hardest** · random {hardest['random']:.0f}%"
    assert f"Hard support: **{hardest['hard']:.0f}% correct**" in texts(page)
    assert f"Easy support: **{hardest['easy']:.0f}% correct**" in texts(page)
    place = int(min(rows["random"].max(), 99) // 5)
    page = open_page("demo", n_tasks="50", accuracy_bar=f"random-{place}")
    assert ", the hardest of this bar** · random" in title()
    assert 5 * place <= float(title().split("random ")[1].rstrip("%")) <= 5 * place + 5
    page = open_page("demo", n_tasks="50", task="7")
    assert title().startswith("**Task 7** · random ")


def test_a_dataset_without_features_shows_published_results(open_page) -> None:
    page = open_page("tiered_imagenet")
    assert "**Published: hard support sets cost 17.7 to 29.6 points on tieredImageNet (Basu et al. 2023" in texts(page)
    assert "tieredImageNet has no features" in texts(page) and len(page.get("plotly_chart")) == 1
    assert "has no images here" in page.info[0].value
    page = open_page("omniglot")
    assert "**Published: 43.2 to 46.7% accuracy with hard support sets on Omniglot (Basu et al. 2023" in texts(page)
    page = open_page("cifar100")
    assert "**Published: hard support sets cost 23.6 to 29.4 points on Meta-Dataset (Basu et al. 2023" in texts(page)


def test_groups_and_attributes_lead_to_their_tasks(shifted) -> None:
    page = link("shifted", n_tasks="50", show="Semantic distance", quarter="1")
    listed = page.dataframe[0].value["task"].tolist()
    assert 5 <= len(listed) < 50 and f"Task {listed[0]}: three support sets" in texts(page)
    page = link("shifted", n_tasks="50", show="Attribute shift", gap_in="context")
    assert f"Task {page.dataframe[0].value['task'].iloc[0]}: three support sets" in texts(page)
    assert "largest shift in context" in texts(page)
    page = link("shifted", n_tasks="50", show="Other classifiers", task="3")
    assert "Task 3: three support sets" in texts(page)


def test_small_classes_without_a_split_open_and_say_what_has_no_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    save_dataset(replace(make_toy(n_images=12, noise=2.0), splits={}), overwrite=True)
    page = link("toy", n_tasks="50")
    assert (page.number_input(key="n_shot").value, page.number_input(key="n_query").value) == (3, 6)
    assert "lower bound" not in texts(page)
    page = link("toy", n_tasks="50", n_shot="2", n_query="10")
    assert "lower bound" in texts(page) and "n_shot" not in texts(page)
    save_dataset(replace(make_toy(small_class=2, noise=2.0), splits={}), overwrite=True)
    page = link("toy", n_tasks="50")
    assert not page.toggle(key="skip_small").value and page.number_input(key="n_shot").value == 1
    assert "has 3 images, of which a search chooses from twice as many" in texts(page)
    page = link("toy", n_tasks="50", skip_small="true")
    assert page.number_input(key="n_shot").value == 5 and "instead of" not in texts(page)
    assert not page.dataframe[0].value["classes"].str.contains("group 0 <b>kind</b> 2", regex=False).any()
