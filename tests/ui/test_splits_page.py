"""The page of splits without a browser: every section, datasets that lack something, saving, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets, jobs
from fsviz.analyses import class_splits, frozen_reference, transfer
from fsviz.datasets.saved import save_dataset
from fsviz.training import TITLES
from tests.browser.digits_workspace import make_digits_workspace
from tests.studies.toy_dataset import make_toy, save_toy_features
from tests.ui.pages import open_link


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture
def toy(home):
    return make_toy(backbones=("alpha_net", "beta_net"))


open_page = partial(open_link, "train_test_distance")


def words(page: AppTest) -> str:
    return "\n".join([m.value for m in (*page.markdown, *page.caption, *page.info, *page.warning)])


def answer_of(page: AppTest) -> str:
    """The answer, which is the first bold sentence of a page; a later section may replace it."""
    return next(m.value for m in page.markdown if m.value.startswith("**")).replace("\\", "")


def test_the_demo_opens_with_its_split_and_sliders_move_it(home) -> None:
    page = open_page("demo")
    demo = datasets.load("demo")
    classes = class_splits.class_features(demo)
    result = class_splits.find_split(demo, classes)
    low, high = class_splits.nearest_at_random(classes, result.split)
    assert answer_of(page).startswith(
        f"**Test classes are {result.nearest:.2f} from their nearest training class (95% of random splits: {low:.2f} "
        f"to {high:.2f}). Divergence reached: {result.split.reached:.2f} of 0.96.**"
    )
    side = class_splits.held_out_side(demo, classes, result.split)
    at_random = class_splits.held_out_at_random(demo, classes, result.split)
    of_side = class_splits.describe_test_side(side, at_random, "EfficientNet-Lite0")
    assert "0.48" in answer_of(page) and of_side in answer_of(page)
    assert not page.metric
    assert "21 of 21 classes are *organism* (others: 43 of 86)" in words(page) and "not reached" not in words(page)
    chart = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert [trace["name"] for trace in chart["data"]][:3] == ["train (65)", "val (21)", "test (21)"]
    assert "test centroid" in [trace["name"] for trace in chart["data"]]
    assert "fsviz split demo" in page.code[0].value
    page.slider(key="divergence").set_value(2.0).run()
    assert not page.error and "reached: 1.93 of 2" in answer_of(page) and "--divergence 2" in page.code[0].value
    page.slider(key="penalty").set_value(1.0).run()
    assert "reached: 1.49 of 2" in answer_of(page) and "Target 2 not reached in 8 dimensions" in words(page)
    assert "--penalty 1" in page.code[0].value
    page.selectbox(key="class").set_value("whale").run()
    assert "**whale** is a **" in words(page)
    page.selectbox(key="mode").set_value("paper").run()
    assert "reached: 2.00 of 2" in answer_of(page) and "Split not determined by the data" in words(page)
    assert page.slider(key="penalty").value == 1.0 and "--penalty" not in page.code[0].value  # as published
    assert not [s for s in page.slider if s.key in ("dims", "starts")]


def test_every_section_opens_with_its_answer(toy) -> None:
    texts = {
        "Target sweep": ("trained on neither side, gets ", "at 6 targets"),
        "Stability": ("With all 12 dimensions two seeds share", "6 seeds per number of dimensions"),
        "Compare splits": ("Test classes are farthest from training classes in", "separates the means"),
        "Class trees": ("Paths between two classes differ by", "16 classes; "),
        "Published splits": ("Published: 38 / 12 / 12 train, val and test classes of EMNIST", "tables 6 to 11"),
    }
    for section, (sentence, caption) in texts.items():
        page = open_page("toy", show=section, starts="4", dims="3", part="all", printed="emnist")
        assert sentence in answer_of(page) and caption in words(page), section
        assert len(page.get("plotly_chart")) >= (section in ("Target sweep", "Stability", "Class trees"))
    page = open_page("toy", mode="superclasses", show="Target sweep")
    assert "Divergence" not in answer_of(page) and "has no target divergence" in words(page)


@pytest.mark.parametrize("section", ["Map", "Target sweep", "Class trees"])
def test_a_class_is_answered_in_the_section_where_it_was_clicked(toy, section: str) -> None:
    name = str(toy.distinct_names(np.arange(16))[0])
    page = open_page("toy", **{"show": section, "starts": "2", "part": "all", "class": name})
    assert " class." in words(page) and "Nearest classes." in words(page)


def test_a_split_is_saved_and_chosen_on_another_page(toy) -> None:
    page = open_page("toy", starts="4")
    page.button(key="save_split").click().run()
    assert "r0.96-starts4" in page.success[0].value.replace("\\", "")
    assert any("split=r0.96-starts4_test" in link.proto.query_string for link in page.get("page_link"))
    assert "r0.96-starts4_test" in datasets.load("toy").splits
    page.button(key="save_split").click().run()
    assert "already" in page.error[0].value
    tasks = open_link("sample_tasks", "toy", fine=False, n_tasks="50")
    assert "r0.96-starts4_test" in tasks.selectbox(key="split").options
    linked = {"split": "r0.96-starts4_test"}  # as the link of the page leads there
    tasks = open_link("sample_tasks", "toy", fine=False, n_tasks="50", **linked)
    assert not tasks.toast and any("--split r0.96-starts4_test" in code.value for code in tasks.code)
    page = open_page("toy", starts="4")
    page.button(key="delete_r0.96-starts4").click().run()
    assert "r0.96-starts4_test" not in datasets.load("toy").splits


def test_benchmarks_without_features_say_so_and_show_what_was_published(home) -> None:
    page = open_page("mini_imagenet")
    assert "has no features here" in answer_of(page) and "60 / 20 / 20 train, val and test classes" in answer_of(page)
    assert "50 of 60 classes are *artifact*" in words(page)
    page.button(key="save_published").click().run()
    assert "published-r0.96_test" in datasets.load("mini_imagenet").splits
    page = open_page("cu_birds")
    assert "has no features" in words(page) and not page.metric


def test_classes_that_are_too_few_to_split_have_a_map_and_distances(toy) -> None:
    few = toy.images[toy.images["class_id"] < 9].reset_index(drop=True)
    small = save_dataset(
        replace(
            toy, name="small", title="Small", images=few, classes=toy.classes.iloc[:9], splits={"all": np.arange(9)}
        )
    )
    save_toy_features(small, "alpha_net")
    page = open_page("small")
    table = class_splits.nearest_classes(class_splits.class_features(small, "alpha_net", 2))
    assert f"are {table['distance'].mean():.2f} from their nearest class on average" in answer_of(page)
    assert "A split needs at least 10 classes with features; there are 9." in answer_of(page)
    chart = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert [trace["name"] for trace in chart["data"]] == ["classes (9)"]
    assert page.dataframe[0].value["distance"].tolist() == pytest.approx(table["distance"].tolist())
    page.selectbox(key="class").set_value(str(table["class"][0])).run()
    assert "Nearest classes." in words(page) and page.dataframe[0].value["distance"][0] == table["distance"][0]


def test_bad_input_is_one_sentence(toy) -> None:
    bare = save_dataset(replace(toy, name="bare", taxonomy=None, splits={"all": np.arange(16)}))
    save_toy_features(bare, "alpha_net")
    page = open_page("bare", show="Class trees", starts="2")
    assert "a comparison needs two" in words(page)
    page = open_page("toy", divergence="-3", dims="many", starts="2")
    assert "of 0.96." in answer_of(page)


def test_the_recorded_grid_shows_the_cost_of_distance_next_to_the_frozen_backbone(home) -> None:
    page = open_page("demo", show="Accuracy cost")
    grid = transfer.training_grid("demo")[0]
    rows = grid.rows
    demo = datasets.load("demo")
    frozen = frozen_reference.of_grid(demo, class_splits.class_features(demo), grid, "efficientnet_lite0")
    sentence, more = frozen_reference.cost_answer(rows, frozen, "EfficientNet-Lite0")
    assert answer_of(page) == f"**{sentence}** {more}"
    chart = json.loads(page.get("plotly_chart")[0].proto.spec)
    names = [trace["name"] for trace in chart["data"] if trace.get("showlegend", True)]
    assert names == [*TITLES.values(), "Frozen EfficientNet-Lite0"]
    assert chart["layout"]["shapes"][0]["y0"] == 20  # chance level of five classes
    slopes, accuracy, pairs, tasks = (page.dataframe[i].value for i in range(4))
    both = {s.method: s for s in transfer.slopes(pd.concat([rows, frozen])) if s.sides == "both"}
    maml = slopes.set_index("row").loc["MAML"]
    assert [maml["both"], maml["both_ci95"]] == pytest.approx([both["maml"].slope, both["maml"].ci95])
    assert maml["published: CIFAR-100"] == -11.53  # table 5
    of_frozen = slopes.set_index("row").loc["Frozen EfficientNet-Lite0"]
    assert of_frozen["both"] == pytest.approx(both[frozen_reference.FROZEN].slope)
    proto = accuracy.set_index("row").loc["ProtoNet"]
    at = transfer.accuracy_points(rows).set_index(["method", "asked"]).loc[("protonet", 2.0)]
    assert [proto["R = 2"], proto["R = 2_ci95"]] == pytest.approx([at["accuracy"], at["ci95"]])
    assert proto["published: CIFAR-100"] == "63.7 → 50.5"  # tables 4 and 1
    assert accuracy.set_index("row").loc["Chance level", "R = 2"] == 20
    assert "difference" in pairs and tasks.set_index("row").loc["Symmetrised KL", "published: Birds"]
    assert "as printed, without intervals" in words(page)
    assert [button for button in page.button if button.label == "Train"]


def test_a_network_is_trained_on_the_split_and_counts_at_once(home, tmp_path: Path) -> None:
    make_digits_workspace(tmp_path / "ws")
    small = {"train_width": "4", "train_side": "16", "train_epochs": "2", "train_n_tasks": "20", "train_n_query": "5"}
    settings = {"show": "Accuracy cost", "starts": "2", "dims": "2", "train_method": "protonet", **small}
    page = open_page("digits", **settings)
    assert "No network is trained on splits of Handwritten digits" in answer_of(page)
    assert page.number_input(key="train_n_way").value == 2  # two test classes
    next(button for button in page.button if button.label == "Train").click().run()
    (run,) = jobs.list_runs("training")
    assert jobs.wait(run.id, 240).state == "finished", run
    page = open_page("digits", **settings)
    result = jobs.results(run.id)
    assert page.metric[-1].value.startswith(f"{result['results'][0]['accuracy']:.1f}")
    assert "2 epochs on 6 train classes" in words(page) and result["backbone"] in words(page)
    assert "vs frozen" in page.metric[-1].delta and "chance level 50%" in page.metric[-1].delta
    assert not [e for e in page.expander if "Task-level" in e.label]  # two test classes: every task is equally far
    assert [button for button in page.button if button.label == "Extract features"]
    assert "No finished pair of a split and its mirror image" in words(page)
    other_half = open_page("digits", **{**settings, "trained_on": "second"})
    assert [button for button in other_half.button if button.label == "Train"]


def test_a_method_is_trained_at_every_divergence_and_its_runs_are_rows_of_the_user(
    home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_digits_workspace(tmp_path / "ws")
    monkeypatch.setattr(jobs.local, "start", lambda polling=False: None)  # no worker: the runs are carried out here
    small = {"train_width": "4", "train_side": "16", "train_epochs": "1", "train_n_tasks": "10", "train_n_query": "5"}
    settings = {"show": "Accuracy cost", "starts": "2", "train_method": "protonet", "train_seed": "3", **small}
    page = open_page("digits", **settings)
    page.button(key="train_grid").click().run()
    n_runs = 2 * len(transfer.TARGETS) + 4
    assert f"{n_runs} runs are queued" in page.success[0].value and f"({n_runs} runs)" in words_of_buttons(page)
    runs = jobs.list_runs("training")
    assert [run.state for run in runs] == ["queued"] * n_runs
    specs = [run.spec for run in runs]
    assert {(s["method"], s["seed"], s["width"], s["side"], s["epochs"], s["n_tasks"]) for s in specs} == {
        ("protonet", 3, 4, 16, 1, 10)
    }
    recipes = [spec["split"]["recipe"] for spec in specs]
    cells = [(r["comparison"], r["divergence"], r["side"], r.get("trained_on", "")) for r in recipes]
    sides = ("first", "second")
    expected = [("divergence", target, side, "") for target in transfer.TARGETS for side in sides]
    expected += [("matched", 2.0, side, half) for side in sides for half in ("nearest", "farthest")]
    assert sorted(cells) == sorted(expected)
    page.button(key="train_grid").click().run()
    assert "0 runs are queued" in page.success[0].value and f"{n_runs} more exist already" in page.success[0].value
    ends = [run for run, cell in zip(runs, cells) if cell[0] == "matched" or cell[1] in (0, 4)]
    for run in ends:
        assert jobs.resume_here(run.id).state == "finished"
    page = open_page("digits", **settings)
    assert page.selectbox(key="of").options == ["Your runs"]
    own = transfer.run_table((run.id, run.spec, run.summary) for run in map(jobs.status, [run.id for run in ends]))
    chart = json.loads(page.get("plotly_chart")[0].proto.spec)
    points = transfer.accuracy_points(own)
    assert chart["data"][0]["name"] == "ProtoNet" and points["n_runs"].tolist() == [2, 2]
    assert f"{own['run'].nunique()} of your runs" in words(page)
    at = points[points["asked"] == 4].iloc[0]
    assert page.dataframe[1].value.set_index("row").loc["ProtoNet", "R = 4"] == pytest.approx(at["accuracy"])
    (pair,) = transfer.matched_differences(own)
    assert page.dataframe[2].value["difference"][0] == pytest.approx(pair.difference)


def words_of_buttons(page: AppTest) -> str:
    return "\n".join(button.label for button in page.button)
