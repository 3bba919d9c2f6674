"""The page Compare datasets without a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz.analyses import compare_datasets as study
from fsviz.cli import main
from fsviz.datasets import saved_splits
from fsviz.datasets.saved import save_dataset
from fsviz.tables import Column
from fsviz.ui.parts import export
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import open_link

PAGE = "compare_datasets"


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    make_toy("clear", noise=0.5)
    make_toy("blurred", noise=3.0)


def words(app) -> str:
    return "\n".join([*(m.value for m in app.markdown), *(c.value for c in app.caption)])


def test_the_page_says_which_is_harder_and_gives_the_command() -> None:
    app = open_link(PAGE, "blurred", against="clear", n_tasks="20", n_shot="2")
    comparison = study.compare({"sides": ["blurred", "clear"], "n_tasks": 20, "n_shot": 2})
    sentence, more = study.verdict(comparison, "clear:test")
    assert f"**{sentence}** {more}" in words(app).replace("\\", "") and "is harder than" in sentence and not app.metric
    assert "shares no root" in words(app) and "Significant: harder by ProtoNet accuracy" in words(app)
    assert {c.proto.id.rpartition("-")[2] for c in app.get("plotly_chart")} >= {"differences", "one_measure"}
    command = "fsviz compare-datasets blurred:test clear:test --n-way 5 --n-shot 2 --n-query 10 --n-tasks 20"
    assert app.code[0].value.startswith(command)
    assert not app.toast and app.query_params["against"] in ("clear", ["clear"])
    assert "Clear" in app.multiselect(key="against").options  # as it is called before it is chosen


def test_every_measure_of_every_side_is_in_a_table() -> None:
    app = open_link(PAGE, "blurred", against="clear:test", n_tasks="20", n_shot="2", show="All values")
    sides, numbers = (frame.value for frame in app.dataframe)
    assert sides["n_classes"].tolist() == [16, 16] and sides["images_median"].tolist() == [24, 24]
    accuracy = numbers[numbers["title"].str.startswith("Accuracy")]
    assert accuracy["side_title"].tolist() == ["Blurred, test", "Clear, test"]
    assert accuracy["first_is"].tolist() == ["", "harder"] and (accuracy["ci95"] > 0).all()


def test_one_entry_adds_a_column_on_the_page_in_the_command_and_in_latex(monkeypatch, capsys) -> None:
    effect = Column("effect", "Effect size", digits=2, kind="number", interval="effect_ci95")
    monkeypatch.setattr(study, "NUMBERS", study.NUMBERS.with_(effect, before="why"))
    app = open_link(PAGE, "blurred", against="clear:test", n_tasks="20", n_shot="2", show="All values")
    column = app.dataframe[1].value["effect"].dropna()
    assert len(column) and "Effect size" in app.dataframe[1].proto.columns
    item = next(i for i in app.session_state["_shown_here"].items.values() if i.title == study.NUMBERS.title)
    half = app.dataframe[1].value["effect_ci95"][column.index[0]]
    cell = f"{column.iloc[0]:.2f} ± {half:.2f}"
    assert "& Effect size " in export.latex_of(item) and cell.replace("±", r"$\pm$") in export.latex_of(item)
    assert "Effect size" in export.csv_of(item).splitlines()[0]
    assert main(["compare-datasets", "blurred", "clear", "--n-tasks", "20", "--n-shot", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Effect size" in printed and cell in printed


def test_the_suite_shows_computed_and_published_rows() -> None:
    suite = "Support sets"
    app = open_link(PAGE, "blurred", against="clear,mini_imagenet", n_tasks="20", n_shot="2", show=suite)
    rows = next(f.value for f in app.dataframe if "cost" in f.value)
    assert rows["title"].tolist() == ["Blurred, test", "Clear, test"] and (rows["hard"] < rows["random"]).all()
    chart = next(c for c in app.get("plotly_chart") if c.proto.id.endswith("suite")).proto.spec
    assert chart.count("(published)") == len(study.published_suite())
    assert "miniImageNet, test is excluded" in words(app) and "--suite" in app.code[0].value


def test_an_empty_choice_asks_for_a_dataset_and_a_bad_link_is_reported() -> None:
    app = open_link(PAGE, "blurred", against="nowhere", n_tasks="20")
    assert "**Choose a dataset or split to compare with.**" in words(app) and app.toast


def test_what_cannot_be_compared_has_no_empty_chart() -> None:
    app = open_link(PAGE, "cifar100", against="mini_imagenet", n_tasks="20")
    assert "CIFAR-100, test and miniImageNet, test cannot be compared: " in words(app)
    assert not any(c.proto.id.endswith("differences") for c in app.get("plotly_chart"))


def test_the_default_opponent_is_another_split_else_a_dataset_of_its_kind() -> None:
    app = open_link(PAGE, "blurred", n_tasks="20", n_shot="2")
    assert app.multiselect(key="against").value == ["demo"]
    app = open_link(PAGE, "demo", n_tasks="20")
    assert app.multiselect(key="against").value == ["demo:val"]


def test_a_measure_of_the_link_is_marked_in_the_figure_and_shown_next_to_it() -> None:
    app = open_link(PAGE, "blurred", against="clear", n_tasks="20", n_shot="2", measure="davies_bouldin")
    assert app.selectbox(key="measure").value == "davies_bouldin"
    specs = {c.proto.id.rpartition("-")[2]: c.proto.spec for c in app.get("plotly_chart")}
    assert "<b>Cluster overlap" in specs["differences"].encode().decode("unicode_escape")
    assert "cluster overlap" in specs["one_measure"]


def test_the_default_opponent_is_never_the_training_side_nor_the_same_classes() -> None:
    dataset = make_toy("sided", noise=0.5)
    parts = {"train": np.arange(8), "val": np.arange(8, 12), "test": np.arange(12, 16)}
    saved_splits.save_split(dataset, "mine", parts, {})
    for split, opponent in (("all", "demo"), ("mine_test", "sided:mine_val"), ("mine_train", "sided:mine_val")):
        app = open_link(PAGE, "sided", split=split, n_tasks="10", n_shot="2", n_way="3")
        assert app.multiselect(key="against").value == [opponent], split


def test_names_in_the_list_have_no_backslashes() -> None:
    dataset = make_toy("my_own", noise=0.5)
    save_dataset(replace(dataset, title="My_own *set* [1]"), overwrite=True)
    app = open_link(PAGE, "blurred", against="my_own", n_tasks="10", n_shot="2")
    options = app.multiselect(key="against").options
    assert "My_own *set* [1]" in options and not any("\\" in option for option in options)
