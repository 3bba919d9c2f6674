"""The page Causes without a browser: its answer, its figures, and the selected tasks in the link."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fsviz import datasets, jobs
from fsviz.studies import causes
from fsviz.text import escape_plotly
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import link_of, open_link

PAGE = "causes"
FEW = {"n_tasks": "60", "n_shot": "2", "n_query": "5", "methods": "protonet"}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy("hardness", noise=2.0)


def markdown(app) -> str:
    return "\n".join(m.value for m in app.markdown)


def figure_values(values: Any) -> np.ndarray:
    """Numbers of a figure, which Plotly may send as base64."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    return np.array(values)


def titles_of(app) -> list[str]:
    layouts = [json.loads(chart.proto.spec)["layout"] for chart in app.get("plotly_chart")]
    return [layout["xaxis"].get("title", {}).get("text", "") for layout in layouts]


def test_the_page_answers_with_a_sentence_and_the_hardest_tasks() -> None:
    app = open_link(PAGE, "hardness", **FEW)
    assert app.markdown[0].value.startswith("**No single cause for ProtoNet:")  # from so few tasks
    assert "Mean accuracy: " in app.markdown[0].value and re.search(
        r"% over 60 \d-way \d-shot tasks, alpha_net features\.", app.markdown[0].value.replace("\\", "")
    )
    assert "**6 of 60 tasks selected: hardest 10%.**" in markdown(app)
    assert "4 measures not available" in [e.label for e in app.expander]
    assert "fsviz causes hardness" in app.code[0].value
    assert [m.label for m in app.metric] == [
        "Predictable without labels",
        "Predictable with support labels",
        "Explained with all labels",
    ]


def test_the_answer_is_the_engines_for_the_measures_of_the_stage() -> None:
    query = {**FEW, "n_tasks": "500"}
    spec = {"study": "causes", "dataset": "hardness", "backbone": "alpha_net", "methods": ["protonet"]}
    measured = jobs.compute({**spec, "n_tasks": 500, "n_shot": 2, "n_query": 5})
    for stage in ("labelled", "before"):
        app = open_link(PAGE, "hardness", **query, stage=stage)
        sentence, more = causes.headline(measured, "ProtoNet", causes.explained(measured, "ProtoNet", stage))
        expected = f"**{sentence}** {more} {causes.describe_accuracy(measured, 'ProtoNet')}"
        assert app.markdown[0].value.replace("\\", "") == expected
    assert "**50 of 500 tasks selected: hardest 10%.**" in markdown(app)


def test_a_preview_of_the_first_tasks_comes_before_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    query = {**FEW, "n_tasks": "200", "seed": "5"}
    with monkeypatch.context() as patch:
        patch.setattr("streamlit.rerun", lambda: None)
        first = open_link(PAGE, "hardness", **query)
    assert first.markdown[0].value == "**Measuring all tasks.** Below is a preview of the first 100."
    assert "**10 of 100 tasks selected: hardest 10%.**" in markdown(first)
    then = open_link(PAGE, "hardness", **query)
    assert "over 200 5-way 2-shot tasks, " in then.markdown[0].value
    assert "**20 of 200 tasks selected: hardest 10%.**" in markdown(then)


def test_figures_follow_the_view_and_the_measure_of_the_link() -> None:
    app = open_link(PAGE, "hardness", **FEW, measure="class_overlap")
    first, tasks, *_ = titles_of(app)
    assert first == "variation in accuracy explained (%)" and tasks == "class overlap (Louvain)"
    app = open_link(PAGE, "hardness", **FEW, figure="Measures", measure="coarsity")
    first, tasks, *_ = titles_of(app)
    assert first.startswith("correlation with accuracy") and tasks == "coarsity"


def test_a_point_shows_the_classes_of_its_task_and_the_task_of_the_link_is_marked() -> None:
    app = open_link(PAGE, "hardness", **FEW, brush="accuracy~0~1", task="7")
    chart = json.loads(app.get("plotly_chart")[1].proto.spec)
    by_name = {trace.get("name"): trace for trace in chart["data"]}
    spec = {"study": "causes", "dataset": "hardness", "backbone": "alpha_net", "methods": ["protonet"]}
    measured = jobs.compute({**spec, "n_tasks": 60, "n_shot": 2, "n_query": 5})
    names = causes.class_names(datasets.load("hardness"), measured)
    assert by_name["selected tasks"]["text"][7].replace("<br>", " ") == escape_plotly(", ".join(names[7]))
    assert len(names[7]) == 5
    (ring,) = (trace for trace in chart["data"] if trace["marker"]["symbol"] == "circle-open")
    accuracy = 100 * measured.accuracy["ProtoNet"][7]
    assert np.allclose(figure_values(ring["y"]), [accuracy])
    assert any(m.value.startswith("**Task 7: ") for m in app.markdown)


def test_a_brush_in_the_link_selects_tasks_and_a_wrong_one_is_reported() -> None:
    app = open_link(PAGE, "hardness", **FEW, brush="accuracy~0~1")
    assert "**60 of 60 tasks selected: in the box.**" in markdown(app)
    next(b for b in app.button if b.label == "Reset to hardest 10%").click().run()
    assert "**6 of 60 tasks selected: hardest 10%.**" in markdown(app) and "brush" not in app.query_params
    app = open_link(PAGE, "hardness", **FEW, brush="colour~0~1")
    assert "**6 of 60 tasks selected: hardest 10%.**" in markdown(app)
    assert any("colour" in t.value for t in app.warning)


def test_a_task_outside_the_selection_comes_first_in_the_list() -> None:
    spec = {"study": "causes", "dataset": "hardness", "backbone": "alpha_net", "methods": ["protonet"]}
    measured = jobs.compute({**spec, "n_tasks": 60, "n_shot": 2, "n_query": 5})
    easiest = int(measured.accuracy["ProtoNet"].argmax())
    app = open_link(PAGE, "hardness", **FEW, task=str(easiest))
    assert f"**Task {easiest}: {measured.accuracy['ProtoNet'].max():.0%} correct**" in markdown(app)
    assert "**6 of 60 tasks selected: hardest 10%.**" in markdown(app)
    (rows,) = (json.loads(c.proto.json)["rows"] for c in app.get("bidi_component") if '"chosen"' in c.proto.json)
    assert rows[0]["id"] == easiest
    app = open_link(PAGE, "hardness", **FEW, task="60")
    assert "**Task 60:" not in markdown(app) and not app.exception


def test_a_box_without_tasks_says_so() -> None:
    app = open_link(PAGE, "hardness", **FEW, brush="accuracy~2~3")
    assert "**0 of 60 tasks selected: in the box.**" in markdown(app)
    assert [i.value for i in app.info] == ["No tasks in this box."] and not app.exception


def test_the_tasks_of_a_run_come_with_its_accuracies() -> None:
    sampler = {"sampler": "uniform", "n_tasks": 60, "n_shot": 2, "n_query": 5}
    spec = {"study": "evaluate", "dataset": "hardness", "backbones": ["alpha_net"], "methods": ["ridge"]}
    run = jobs.run_in_foreground({**spec, "sampler": sampler})
    method = "Ridge regression (R2D2)"
    app = open_link(PAGE, "hardness", tasks_of=f"run:{run.id}", accuracy_of=method)
    assert link_of(app) == {"tasks_of": f"run:{run.id}", "accuracy_of": method} and not app.toast
    accuracy = jobs.results(run.id)["results"][0]["accuracy"]
    assert f"Mean accuracy: {accuracy:.1f} ±" in app.markdown[0].value
    assert "for Ridge regression" in app.markdown[0].value


def test_too_few_tasks_for_a_regression_still_show_their_measures() -> None:
    app = open_link(PAGE, "hardness", **{**FEW, "n_tasks": "20"})
    assert app.markdown[0].value.startswith("**Causes cannot be compared here.**")
    assert "at least 50 tasks. Got 20." in app.markdown[0].value
    assert titles_of(app)[0].startswith("correlation with accuracy")
    assert "**2 of 20 tasks selected: hardest 10%.**" in markdown(app) and not app.exception


def test_a_benchmark_without_images_says_what_is_missing() -> None:
    app = open_link(PAGE, "tiered_imagenet")
    assert not app.exception and not app.metric
