"""Drill-down without a browser: a click on a point, a bar, a cell or a row, read from the link."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, jobs
from fsviz.analyses import attribute_shifts, class_splits, run_comparison, transfer
from fsviz.figures import runs as run_figures
from fsviz.records import SIDES
from fsviz.studies import prediction, search_comparison, stress_test, support_sets
from fsviz.studies.prediction import measured
from fsviz.text import escape_plotly
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import open_link


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture
def toy():
    return make_toy(backbones=("alpha_net", "beta_net"))


def words(page) -> str:
    return "\n".join(m.value for m in (*page.markdown, *page.caption)).replace("\\", "")


def carried(page, key: str) -> list:
    """Custom data of the points of a figure, trace by trace."""
    for chart in page.get("plotly_chart"):
        if chart.proto.id.endswith(f"-{key}"):
            return [trace["customdata"] for trace in json.loads(chart.proto.spec)["data"] if "customdata" in trace]
    raise AssertionError(f"no figure {key}")


def test_splits_lead_to_classes_and_runs() -> None:
    page = open_link("train_test_distance", "demo", show="Accuracy cost", runs_of="maml@2")
    rows = transfer.training_grid("demo")[0].rows
    behind_it = rows[(rows["method"] == "maml") & (rows["asked"] == 2) & (rows["comparison"] == "divergence")]
    table = next(frame.value for frame in page.dataframe if "trained_on" in frame.value)
    assert table["run"].tolist() == behind_it["run"].tolist() and "Runs of MAML, R = 2" in words(page)
    assert "maml@2" in [point[4] for trace in carried(page, "transfer") for point in trace if len(point) > 4]
    page.button(key="close_runs_of").click().run()
    assert "Runs of MAML, R = 2" not in words(page) and "runs_of" not in page.query_params
    page = open_link("train_test_distance", "demo", show="Accuracy cost", runs_of="maml@2")
    page.button(key="see_split").click().run()
    assert page.slider(key="divergence").value == 2.0 and "runs_of" not in page.query_params
    assert page.slider(key="penalty").value == 1.0 and "reached: 1.49 of 2" in words(page)  # the split of the run
    assert not page.toast and "class means, first two of" in words(page)
    of_slope = rows[(rows["method"] == "maml") & (rows["comparison"] == "divergence")]
    page = open_link("train_test_distance", "demo", show="Accuracy cost", runs_of="maml@slope")  # a row of slopes
    assert "Runs of MAML, every divergence" in words(page)
    table = next(frame.value for frame in page.dataframe if "trained_on" in frame.value)
    assert table["run"].tolist() == of_slope["run"].tolist() and not any(b.key == "see_split" for b in page.button)
    page = open_link("train_test_distance", "demo", runs_of="maml@77", show="Accuracy cost")
    assert "does not apply here" in page.toast[0].value and "maml" in page.toast[0].value


def test_a_bar_of_superclasses_leads_to_its_classes(toy) -> None:
    dataset = datasets.load("demo")
    result = class_splits.find_split(dataset, class_splits.class_features(dataset, "efficientnet_lite0"))
    table = class_splits.superclass_table(dataset, result.split)
    kind = str(table.index[0])
    side = next(side for side in SIDES if table.loc[kind, side])
    page = open_link("train_test_distance", "demo", kind=f"{side}: {kind}")
    assert f"{side} classes: {kind}" in words(page)
    of_kind = np.array(class_splits.groups_of(dataset, result.split)) == kind
    assert int((of_kind & (result.split.sides == SIDES.index(side))).sum()) == table.loc[kind, side]


def test_hard_tasks_lead_to_tasks(toy) -> None:
    few = {"n_tasks": "20", "n_way": "3", "n_shot": "2", "n_query": "4"}
    page = open_link("hard_supports", "toy", **few, show="Search methods", search_of="accuracy", filtered_of="filtered")
    assert "hardest first" in words(page) and "tasks: hardest random tasks" in words(page)
    assert {"fastdiffsel", "accuracy"} <= set(np.concatenate([np.ravel(c) for c in carried(page, "compared")[:1]]))
    page = open_link("hard_supports", "toy", **few, show="Step size", step_of="200", steps_of="2")
    assert "Hard supports after one step of 200" in words(page) and "after 2 gradient steps" in words(page)
    assert carried(page, "step_sizes")[1][0].endswith("@easy")  # a point of easy supports leads to easy supports
    page = open_link("hard_supports", "toy", **few, show="Step size", step_of="200@easy")
    assert "Easy supports after one step of 200, easiest first" in words(page)
    page = open_link("hard_supports", "toy", **few, show="Other classifiers", stress_cell="beta_net tim")
    assert "Tasks of beta_net, TIM, largest loss first" in words(page)


def test_the_tasks_behind_a_cell_of_the_stress_test_are_those_it_was_measured_on(toy) -> None:
    spec = {"dataset": "toy", "n_tasks": 6, "sources": ["alpha_net"], "backbones": ["alpha_net", "beta_net"]}
    spec |= {"adaptations": ["protonet", "tim"], "n_way": 3, "n_shot": 2, "n_query": 4}
    test = jobs.compute({"study": "stress_test", **spec})
    for row in stress_test.summary(test)["matrix"]:
        cell = "alpha_net", row["backbone"], row["adaptation"]
        predictions, (_, random, hard) = stress_test.predictions_of(test, *cell), test.cell(*cell)
        assert 100 * random.mean() == pytest.approx(row["random"]), row
        assert predictions.task_mean(predictions.rank == 0) == pytest.approx(hard), row
        assert 100 * hard.mean() == pytest.approx(row["hard"]), row


def test_filtered_tasks_are_kept_in_the_order_of_their_accuracies(toy) -> None:
    spec = {"dataset": "toy", "backbone": "alpha_net", "n_tasks": 5, "n_random": 100, "n_way": 3, "n_shot": 2}
    filtered = search_comparison.filtered_tasks({**spec, "n_query": 4})
    kinds = {kind: len(filtered.accuracy(kind)) for kind in filtered.sets}
    assert kinds == {kind: len(tasks) for kind, tasks in filtered.sets.items()} and kinds["searched"] == 5
    checked = support_sets.check({k: v for k, v in {**spec, "n_query": 4}.items() if k != "n_random"})
    dataset = datasets.load("toy")
    table = support_sets.sample_tasks(checked)[1]
    for kind, tasks in filtered.sets.items():
        predictions = support_sets.classify(checked, table, tasks, dataset)
        assert 100 * predictions.task_mean(predictions.rank == 0) == pytest.approx(filtered.accuracy(kind)), kind


def test_predictions_lead_to_tasks_and_images(toy) -> None:
    few = {"n_tasks": "20", "n_way": "3", "n_shot": "2", "n_query": "4"}
    page = open_link("predict_accuracy", "toy", show="Sources of variance", cause="fixed classes", **few)
    assert "Tasks: fixed classes, hardest first" in words(page)
    page = open_link("predict_accuracy", "toy", show="What to label next", labelled="random@2", **few)
    assert "First 2 images to label: random" in words(page)


def test_images_are_labelled_in_the_order_of_their_confidence(toy) -> None:
    spec = {"dataset": "toy", "backbone": "alpha_net", "setting": "semi", "n_tasks": 4, "question": "labelling"}
    result = jobs.compute({"study": "prediction", **spec, "n_way": 3, "n_shot": 2, "n_query": 5})
    tasks, images = prediction.labelled_images(result, "least confident", 4)
    from fsviz import features

    predictions = measured.predict(result.spec, tasks, features.load(toy, "alpha_net"))
    for t, image_ids in enumerate(images):
        order = np.argsort(predictions["confidence"][t].ravel(), kind="stable")
        assert image_ids.tolist() == tasks.query[t].ravel()[order[:4]].tolist()
    _, at_random = prediction.labelled_images(result, "random", 4)
    assert [a.tolist() for a in at_random] != [a.tolist() for a in images]


def test_tasks_of_a_class_and_a_pair_of_a_task(toy) -> None:
    name = datasets.load("demo").classes["class_name"].astype(str)
    test = name[datasets.load("demo").split_class_ids("test")].iloc[0]
    page = open_link("sample_tasks", "demo", **{"with": f"chosen:{test}", "cell": "0-1", "n_tasks": "200"})
    assert f"tasks with {test}, finest first" in words(page) and not page.toast
    page = open_link("sample_tasks", "demo", **{"with": "chosen:no such class", "n_tasks": "200"})
    assert "finest first" not in words(page)


def test_runs_lead_to_the_tasks_of_a_quarter_and_to_where_methods_differ(toy) -> None:
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"]}
    sampler = {"sampler": "uniform", "n_way": 3, "n_shot": 1, "n_query": 4, "n_tasks": 60}
    run = jobs.run_in_foreground({**spec, "methods": [{"name": "protonet"}, {"name": "ridge"}], "sampler": sampler})
    lines = run_comparison.method_runs(run.id, jobs.spec(run.id), jobs.chunks(run.id), run.summary)
    ranks = run_comparison.ranks(lines)
    name, line = next(iter(run_comparison.by_name(lines).items()))
    for quarter in range(1, 5):
        own = run_comparison.tasks_of_quarter(line, quarter)
        accuracy = ranks[(ranks["method"] == name) & (ranks["bin"] == quarter)]["accuracy"].iloc[0]
        assert 100 * line.accuracy[own].mean() == pytest.approx(accuracy)
    other_method = str(run_comparison.differences(lines)["name"].iloc[0])
    page = open_link("runs", "toy", rank_of=f"{name}@Q1", differs=other_method)
    assert "Tasks of Q1" in words(page) and "Largest differences" in words(page) and not page.toast
    figure = run_figures.plot_ranks(ranks)
    assert escape_plotly(f"{name}@Q1") in [point[0] for point in figure.data[1].customdata]


def test_support_images_of_a_value_are_counted(toy) -> None:
    demo = datasets.load("demo")
    spec = {"dataset": "demo", "backbone": "efficientnet_lite0", "n_tasks": 4, "attribute": "context"}
    value = next(iter(attribute_shifts.query_values(demo, "context")))
    sets = attribute_shifts.restricted_sets({**spec, "values": [value], "n_way": 3, "n_shot": 2, "n_query": 2})
    image_ids = attribute_shifts.images_with(sets, demo, "context", "random", value)
    support = sets.tasks["random"].support.ravel()
    contexts = demo.image_contexts()
    assert sorted(image_ids) == sorted({int(i) for i in support if i >= 0 and contexts[i] == value})
