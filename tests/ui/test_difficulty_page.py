"""The page Difficulty without a browser: it answers at once, and the chosen tasks are in the link."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz import jobs
from tests.studies.toy_dataset import make_toy
from tests.ui.opening import link_of, open_link

PAGE = "causes"
FEW = {"n_tasks": "60", "n_shot": "2", "n_query": "5", "methods": "protonet"}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy("hardness", noise=2.0)


def markdown(app) -> str:
    return "\n".join(m.value for m in app.markdown)


def test_the_page_answers_with_a_sentence_and_the_hardest_tenth() -> None:
    app = open_link(PAGE, "hardness", **FEW)
    assert app.metric[0].label == "Mean accuracy of ProtoNet" and len(app.metric) == 4
    assert app.markdown[0].value.startswith("**No single cause explains it: for ProtoNet")  # from so few tasks
    assert "**6 of 60 tasks are chosen:** the hardest tenth" in markdown(app)
    assert "4 measures are not known of these tasks" in [e.label for e in app.expander]
    assert "fsviz causes hardness" in app.code[0].value


def test_the_page_names_the_cause_once_there_are_tasks_enough() -> None:
    app = open_link(PAGE, "hardness", **{**FEW, "n_tasks": "500"})
    assert app.markdown[0].value.startswith("**For ProtoNet, these tasks are hard")
    assert "No single cause" not in markdown(app) and "**50 of 500 tasks are chosen:**" in markdown(app)


def test_a_brush_in_the_link_chooses_tasks_and_a_wrong_one_is_told() -> None:
    app = open_link(PAGE, "hardness", **FEW, brush="accuracy~0~1")
    assert "**60 of 60 tasks are chosen:** those in the box" in markdown(app)
    next(b for b in app.button if b.label == "The hardest tenth again").click().run()
    assert "**6 of 60 tasks are chosen:**" in markdown(app) and "brush" not in app.query_params
    app = open_link(PAGE, "hardness", **FEW, brush="colour~0~1")
    assert "**6 of 60 tasks are chosen:**" in markdown(app)
    assert any("colour" in t.value for t in app.warning)


def test_the_tasks_of_a_run_come_with_its_accuracies() -> None:
    sampler = {"sampler": "uniform", "n_tasks": 60, "n_shot": 2, "n_query": 5}
    spec = {"study": "evaluate", "dataset": "hardness", "backbones": ["alpha_net"], "methods": ["ridge"]}
    run = jobs.run_in_foreground({**spec, "sampler": sampler})
    method = "Ridge regression (R2D2)"
    app = open_link(PAGE, "hardness", tasks_of=f"run:{run.id}", accuracy_of=method)
    assert link_of(app) == {"tasks_of": f"run:{run.id}", "accuracy_of": method} and not app.toast
    assert app.metric[0].label == "Mean accuracy of Ridge regression (R2D2)"
    assert app.metric[0].value.startswith(f"{jobs.results(run.id)['results'][0]['accuracy']:.1f}")


def test_fewer_tasks_than_explaining_takes_still_show_their_measures() -> None:
    app = open_link(PAGE, "hardness", **{**FEW, "n_tasks": "20"})
    assert any("at least 50 tasks" in i.value for i in app.info)
    assert "**2 of 20 tasks are chosen:**" in markdown(app) and not app.exception


def test_a_benchmark_without_images_says_what_is_missing() -> None:
    app = open_link(PAGE, "tiered_imagenet")
    assert not app.exception and not app.metric
