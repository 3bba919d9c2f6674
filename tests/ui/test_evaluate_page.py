"""The page Evaluate without a browser: previews, saved testbeds and runs that replace a preview."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.sampling.testbeds import save_testbed
from fsviz.studies import evaluate
from tests.studies.toy_dataset import make_toy
from tests.ui.evaluation import accuracy_in, answer_of, cancelled_run, open_page, record, texts
from tests.ui.pages import in_workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with in_workspace(tmp_path_factory) as home:
        make_toy("toy_pages", noise=2.0)
    return home


@pytest.fixture
def same_toy(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `toy`, the same for all tests that record and save nothing: what the page computes is computed once."""
    monkeypatch.setenv("FSVIZ_HOME", str(workspace))


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Class names with HTML in them; features; an empty list of runs."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy("toy_pages", noise=2.0)


def test_evaluate_opens_on_an_imported_dataset(same_toy) -> None:
    app = open_page("evaluate")
    assert "± " in accuracy_in(answer_of(app)) and "Preview: 200 tasks" in answer_of(app)
    assert "(semantic 5-way 5-shot, alpha_net)" in answer_of(app)
    assert not app.metric and "chance level 20%, 95% CI over classes." in answer_of(app)
    assert "It has no presets: easyfsl does not have this method." in texts(app)  # ridge regression
    assert "<b>kind</b>" not in texts(app).replace("\\<b\\>kind\\</b\\>", "")  # class names are text


def test_methods_that_depend_on_the_feature_scale_are_listed(same_toy) -> None:
    app = open_page("evaluate")
    assert "Invariant to feature scale" in texts(app) and "depend on the scale of the features" not in texts(app)
    app.multiselect(key="methods").set_value(["protonet", "tim"]).run()
    assert "TIM: predictions depend on the scale of the features" in texts(app)


def test_a_setting_changes_the_preview(same_toy) -> None:
    app = open_page("evaluate")
    before = accuracy_in(answer_of(app))
    app.number_input(key="n_way").set_value(10).run()
    assert not app.exception and accuracy_in(answer_of(app)) != before


def test_several_testbeds_become_a_run_each(toy) -> None:
    for seed in (1, 2):
        save_testbed(evaluate.sample_testbed(toy, {"n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 20}, seed))
    names = evaluate.testbeds(toy)
    app = open_page("evaluate")
    app.selectbox(key="tasks_from").set_value("saved").run()
    app.multiselect(key="testbeds").set_value(names).run()
    assert not app.error, app.error[0].value
    assert not app.exception and "and 1 more testbed" in texts(app)
    next(button for button in app.button if button.key == "start").click().run()
    assert not app.exception
    runs = [jobs.wait(run.id, 120) for run in jobs.list_runs()]
    assert sorted(run.spec["testbed_name"] for run in runs) == sorted(names)
    assert [run.state for run in runs] == ["finished", "finished"]


def test_evaluate_offers_both_kinds_of_tasks_in_one_run(same_toy) -> None:
    app = open_page("evaluate")
    app.selectbox(key="task_kinds").set_value("tables").run()
    assert not app.exception and "in each of 4 testbeds" in texts(app)
    assert any("--side-by-side 1,5" in code.value for code in app.code)


def test_a_class_table_without_features_is_explained(same_toy) -> None:
    app = open_page("evaluate", "tiered_imagenet")
    assert "has no images here" in texts(app) and "fsviz add" in texts(app) and not app.metric
    app = open_page("evaluate", "digits")
    assert any(button.label.startswith("Extract features") for button in app.button)


def test_every_mean_of_the_answers_has_an_interval(toy) -> None:
    record()
    for name in ("evaluate", "runs"):
        answer = answer_of(open_page(name)).replace("95% CI", "").partition("chance level")[0]
        numbers = re.findall(r"[\d.]+(?: ± [\d.]+)?(?:%| points)", answer)
        assert len(numbers) >= 2 and all("±" in number for number in numbers)


def test_a_confused_pair_follows_its_settings_and_is_in_the_link(same_toy) -> None:
    app = open_page("evaluate", show="Errors")
    box = next(s for s in app.selectbox if s.label.startswith("Most confused pairs"))
    box.set_value(box.proto.options and list(dict.fromkeys(_pairs(app)))[1]).run()
    pair = app.session_state["pair"]
    assert app.query_params["pair"] in (pair, [pair]) and not app.toast
    for n_way in (3, 8):
        app.number_input(key="n_way").set_value(n_way).run()
        assert not app.exception and not app.toast
        box = next(s for s in app.selectbox if s.label.startswith("Most confused pairs"))
        label = box.format_func(box.value) if box.format_func else box.value
        first, _, second = label.partition(" (")[0].partition(" → ")
        page_text = texts(app).replace("\\", "")
        counts = (
            rf"predicts \*\*{re.escape(first)}\*\* as \*\*{re.escape(second)}\*\* in ([\d,]+) of ([\d,]+) predictions"
        )
        matched = re.search(counts + r".*, on ([\d,]+) of ([\d,]+) different images, over [\d,]+ tasks?", page_text)
        wrong, all_predictions, wrong_images, images = (int(n.replace(",", "")) for n in matched.groups())
        assert wrong_images <= wrong and wrong_images <= images <= all_predictions


def _pairs(app: AppTest) -> list[str]:
    from fsviz.analyses import run_comparison

    pairs: list[str] = []
    pairs_table = run_comparison.pairs_table

    def spy(*args, **kwargs):
        table = pairs_table(*args, **kwargs)
        pairs[:] = [f"{row.class_id}-{row.taken_for}" for row in table.itertuples(index=False)]
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_comparison, "pairs_table", spy)
        app.run()
    return pairs


def test_a_link_opens_evaluate_with_a_saved_testbed_and_no_toast(toy) -> None:
    for seed in (1, 2):
        save_testbed(evaluate.sample_testbed(toy, {"n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 20}, seed))
    name = evaluate.testbeds(toy)[1]
    for source in ("saved", "Saved testbed"):  # the identifier or the title
        app = open_page("evaluate", tasks_from=source, testbeds=name)
        assert not app.toast and app.multiselect(key="testbeds").value == [name]
        assert any("--testbed" in code.value and name in code.value for code in app.code)
    app.selectbox(key="tasks_from").set_value("draw").run()
    assert not app.exception and not app.toast and "testbeds" not in app.query_params


def test_tasks_are_those_of_the_method_that_was_chosen(same_toy) -> None:
    app = open_page("evaluate", show="Tasks")
    assert "% correct (ProtoNet)" not in texts(app)
    app.selectbox(key="whose").set_value("protonet@alpha_net").run()
    assert not app.exception and "% correct (ProtoNet)" in texts(app) and not app.toast
    bars = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["yaxis"]
    assert [name for name in bars["ticktext"] if name.startswith("<b>")] == ["<b>ProtoNet</b>"]


def test_accuracy_per_class_is_that_of_the_predictions(same_toy) -> None:
    app = open_page("evaluate", show="Accuracy per class", methods="protonet")
    table = app.dataframe[0].value
    assert len(table) == 16 and table["accuracy"].is_monotonic_increasing
    mean = (table["accuracy"] * table["queries"]).sum() / table["queries"].sum()
    assert f"{mean:.1f} ±" in answer_of(app)


def test_the_page_says_if_the_full_run_has_other_tasks(same_toy) -> None:
    app = open_page("evaluate", "demo")
    assert "Its median coarsity is" in texts(app) and app.toggle(key="repeats").label in texts(app)
    app.toggle(key="repeats").set_value(True).run()
    assert not app.exception and "median coarsity is" not in texts(app)


def test_start_says_so_before_anything_is_drawn(same_toy, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz.errors import BadInput
    from fsviz.ui.parts import access

    def refuse(*_: object) -> None:
        raise BadInput("Nothing is submitted here.")

    app = open_page("evaluate")
    assert "Queued." not in texts(app)
    monkeypatch.setattr(access, "do", refuse)  # the page stands still where the work would begin
    app.button(key="start").click().run()
    assert "Queued." in texts(app) and [e.value for e in app.error] == ["Nothing is submitted here."]


def test_a_finished_run_replaces_the_preview(toy) -> None:
    app = open_page("evaluate")
    assert "Preview: 200 tasks" in texts(app) and "finished" not in texts(app)
    shape = {"sampler": "semantic", "split": "test", "n_way": 5, "n_shot": 5, "n_query": 10, "n_tasks": 1000}
    run = record(methods=["bd_cspn", "ridge", "simpleshot", "protonet", "knn"], sampler=shape)
    app = open_page("evaluate")
    assert f"Run {run.id}: 1,000 tasks" in answer_of(app) and "Full run finished" in texts(app)
    assert "Preview" not in texts(app) and not any(button.key == "start" for button in app.button)
    results = [r for r in run.summary["results"] if r["method"] != "knn"]
    best = max(results, key=lambda r: r["accuracy"])
    assert accuracy_in(answer_of(app)) == f"{best['accuracy']:.1f} ± {best['ci95_classes']:.1f}%"
    assert answer_of(app).startswith((f"**{best['label']} is best: ", f"**No clear winner: {best['label']}, "))
    app.number_input(key="seed").set_value(1).run()
    assert "Preview: 200 tasks" in texts(app) and any(button.key == "start" for button in app.button)
    app.number_input(key="seed").set_value(0).run()
    app.multiselect(key="methods").set_value(["protonet", "matching"]).run()  # the run has not both
    assert "Preview: 200 tasks" in texts(app)


def test_no_method_is_called_the_best_while_others_are_missing(same_toy, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz.ui.pages.evaluate import preview

    app = open_page("evaluate")
    first = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["marker"]["color"]
    assert len(set(first)) == 2
    monkeypatch.setattr(evaluate, "guess_seconds", lambda *args: 100.0 if args[2] == "bd_cspn" else 0.0)
    assert preview.PREVIEW_SECONDS < 100
    app = open_page("evaluate")
    assert answer_of(app).partition(":")[0].endswith(" of 3 of 4 methods")
    assert "Slow methods run only in the full run: BD-CSPN." in answer_of(app)
    colours = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["marker"]["color"]
    assert len(colours) == 3 and len(set(colours)) == 1


def test_tasks_of_all_classes_have_bars_only_and_the_page_says_why(toy) -> None:
    app = open_page("evaluate")
    app.number_input(key="n_way").set_value(16).run()
    assert not app.exception and "Every task has the same 16 classes, so coarsity is" in texts(app)
    assert len(app.get("plotly_chart")) == 1 and "(Q1)" not in texts(app)
    assert "Top-5 accuracy" in answer_of(app)
    record(sampler={"sampler": "semantic", "n_way": 16, "n_shot": 1, "n_query": 5, "n_tasks": 60})
    app = open_page("runs")
    assert "Every task has the same 16 classes" in texts(app) and "no taxonomy" not in texts(app)
    assert "Top-5 (%)" in texts(app) and "over images" in texts(app)  # every task holds every class


def test_top5_is_not_shown_for_five_ways(same_toy) -> None:
    app = open_page("evaluate")
    assert "Top-5" not in answer_of(app)


def test_a_stopped_run_is_resumed_where_it_was_cancelled(toy) -> None:
    shape = {"sampler": "semantic", "split": "test", "n_way": 5, "n_shot": 5, "n_query": 10, "n_tasks": 60}
    methods = ["protonet", "simpleshot", "ridge", "bd_cspn"]
    run = cancelled_run(5, methods=methods, sampler=shape)
    app = open_page("evaluate", n_tasks="60")
    assert "was cancelled" in texts(app) and "Preview" in texts(app)
    app.button(key="resume").click().run()
    assert not app.exception and jobs.wait(run.id, 120).state == "finished"
    app = open_page("evaluate", n_tasks="60")
    assert "Full run finished" in texts(app) and [r.id for r in jobs.list_runs()] == [run.id]
