"""The pages Evaluate and Runs without a browser: awkward datasets and damaged runs still give a page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.errors import Cancelled, FsvizError
from fsviz.jobs import store
from fsviz.sampling.testbeds import save_testbed
from fsviz.studies import evaluate
from tests.studies.toy_dataset import make_toy, save_toy_features
from tests.ui.pages import in_workspace

ROOT = Path(__file__).resolve().parent.parent.parent


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


def open_page(name: str, dataset: str = "toy_pages") -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page(f"pages/{name}.py")
    app.query_params["dataset"] = dataset
    app.run()
    assert not app.exception, app.exception[0].value
    return app


def record(**more) -> jobs.Run:
    sampler = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 60}
    spec = {"study": "evaluate", "dataset": "toy_pages", "backbones": ["alpha_net"], "methods": ["protonet", "ridge"]}
    whole = {**spec, "sampler": sampler, "device": "cpu", **more}
    return jobs.run_in_foreground({name: value for name, value in whole.items() if value is not None})


def answer_of(app: AppTest) -> str:
    """The answer of a page, as it is read."""
    (text,) = (element.value for element in app.markdown if element.value.startswith("**") and ".** " in element.value)
    return text.replace("\\", "")


def accuracy_in(answer: str) -> str:
    """The first accuracy of an answer, with its interval."""
    return re.search(r"\d+\.\d(?: ± \d+\.\d)?%", answer)[0]


def texts(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.error, app.warning, app.info, app.success, app.get("html"))
    return "\n".join(str(getattr(e, "value", "") or getattr(e.proto, "body", "")) for kind in kinds for e in kind)


def test_evaluate_opens_on_an_imported_dataset(same_toy) -> None:
    app = open_page("evaluate")
    assert "± " in accuracy_in(answer_of(app)) and "Preview: 200 tasks, 5-way 5-shot" in answer_of(app)
    assert not app.metric and "chance level 20%, 95% CI over classes." in answer_of(app)
    assert "It has no presets: easyfsl does not have this method." in texts(app)  # ridge regression
    assert "<b>kind</b>" not in texts(app).replace("\\<b\\>kind\\</b\\>", "")  # class names are text


def test_what_the_scale_of_features_does_to_a_method_is_said(same_toy) -> None:
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


def test_runs_compare_and_survive_damage(toy, tmp_path) -> None:
    good = record()
    broken = record(seed=1)
    (jobs.folder(broken.id) / "spec.json").write_text("{ not json")

    def spoil(values) -> None:
        values[:] = float("nan")

    save_toy_features(toy, "spoiled", spoil=spoil)
    with pytest.raises(FsvizError, match="NaN"):
        record(backbones=["spoiled"])
    app = open_link("runs", dataset="toy_pages", show="All runs")
    table = app.dataframe[-1].value
    assert sorted(table["state"]) == ["⚠️ failed", "✅ finished", "💥 damaged"]
    assert any("spec.json" in note for note in table["error"]) and any("NaN" in note for note in table["error"])
    assert "%" in accuracy_in(answer_of(app)) and good.id in set(table["run"])
    app.text_input(key="filter").set_value("damaged").run()
    assert not app.exception and app.dataframe[-1].value["run"].tolist() == [broken.id]
    app.text_input(key="filter").set_value("no such run").run()
    assert not app.exception and not app.dataframe and "No run matches" in texts(app)
    (jobs.folder(good.id) / "inputs" / "tasks.parquet").unlink()
    open_page("runs")  # the cached lines may still be shown; nothing falls over


@pytest.mark.parametrize("n_tasks", [1, 2, 3, 5, 7])
def test_runs_of_very_few_tasks_are_shown(toy, n_tasks: int) -> None:
    sampler = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": n_tasks}
    record(sampler=sampler)
    app = open_page("runs")
    assert f"{n_tasks} task" in answer_of(app) and "needs at least 50 tasks" in texts(app)
    assert [chart.proto.id.rpartition("-")[2] for chart in app.get("plotly_chart")] == ["differences", "bars"]


def test_a_run_is_named_on_the_page_and_found_by_its_name(toy) -> None:
    first, second = record(), record(seed=1)
    app = open_link("runs", dataset="toy_pages", show="All runs")
    assert "name" not in app.dataframe[-1].value or not any(app.dataframe[-1].value["name"])

    def edit(run_id: str) -> None:
        from fsviz import jobs
        from fsviz.ui.pages.runs.run_table import edit_label

        edit_label(jobs.status(run_id))

    fields = AppTest.from_function(edit, kwargs={"run_id": first.id}).run()
    fields.text_input[0].set_value("Base *line*")
    fields.text_area[0].set_value("first try")
    fields.button[0].click().run()
    assert not fields.exception
    assert (jobs.status(first.id).name, jobs.status(first.id).note) == ("Base *line*", "first try")
    app = open_link("runs", dataset="toy_pages", show="All runs", filter="LINE try")
    assert app.dataframe[-1].value["run"].tolist() == [first.id] and not app.toast
    titles = app.multiselect(key="runs").options
    assert [title.startswith("Base *line* · ") for title in titles] == [False, True] and second.id[-4:] in titles[0]


def test_a_run_that_was_stopped_shows_what_it_has(toy) -> None:
    def stop(done: int, total: int, message: str) -> None:
        if done == 3:
            store.ask_to_stop(jobs.folder(jobs.list_runs()[0].id))

    sampler = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 60}
    spec = {"study": "evaluate", "dataset": "toy_pages", "backbones": ["alpha_net"], "methods": ["protonet"]}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Cancelled):
        for name in ("_WRITE_EVERY", "_SUMMARISE_EVERY"):
            patch.setattr(sys.modules["fsviz.jobs.execute"], name, 0.0)
        jobs.run_in_foreground({**spec, "sampler": sampler, "device": "cpu", "chunk": 10}, stop)
    (run,) = jobs.list_runs()
    assert run.state == "cancelled" and run.summary and 0 < run.n_done < run.n_chunks
    app = open_page("runs")
    assert f"over {10 * run.n_done:,} tasks" in answer_of(app)


def sent(app: AppTest) -> int:
    """Bytes of the figures and tables of a page."""
    kinds = ("plotly_chart", "arrow_data_frame", "html")
    return sum(element.proto.ByteSize() for kind in kinds for element in app.get(kind))


def test_a_long_run_is_read_from_its_kept_numbers_and_sends_no_more_than_a_short_one(toy, monkeypatch) -> None:
    from fsviz.ui.parts import recorded

    monkeypatch.setattr(recorded, "MAX_PREDICTED", 500)
    read: list[int] = []
    opened = store.Chunk._opened
    monkeypatch.setattr(store.Chunk, "_opened", lambda chunk: (read.append(chunk.index), opened(chunk))[1])
    shape = {"sampler": "semantic", "n_way": 4, "n_shot": 1, "n_query": 2}
    bytes_sent = {}
    for n_tasks in (2_000, 6_000):
        run = record(methods=["protonet"], sampler={**shape, "n_tasks": n_tasks}, chunk=250, seed=n_tasks)
        read.clear()
        app = open_link("runs", dataset="toy_pages", show="Errors")
        assert f"over {n_tasks:,} tasks" in answer_of(app)
        assert set(read) <= {0, 1}, "only the first tasks are looked at one by one"
        assert f"First 500 of {n_tasks:,} tasks" in texts(app)
        bytes_sent[n_tasks] = sent(app)
        jobs.delete(run.id)
    assert bytes_sent[6_000] < 1.1 * bytes_sent[2_000]


def test_intervals_window_and_both_kinds_of_tasks_on_the_page_runs(toy) -> None:
    from fsviz.studies.evaluate import both_samplers

    shape = {"n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 60}
    record(sampler=None, samplers=both_samplers(shape, (1, 2)))
    app = open_page("runs")
    assert "Semantic vs uniform tasks" in texts(app) and "Uniform tasks (%)" in texts(app)
    assert "rolling mean over 20 of 60 tasks" in texts(app)
    assert any("spearman" in frame.value for frame in app.dataframe)
    assert "with accuracy (60 tasks, 95% CI over classes)" in texts(app)
    over_classes = answer_of(app)
    app.selectbox(key="over").set_value("images").run()
    assert not app.exception and answer_of(app) != over_classes
    assert "95% CI over images" in answer_of(app)
    app.slider(key="window").set_value(50).run()
    assert "rolling mean over 30 of 60 tasks" in texts(app)
    before = answer_of(app)
    assert len(app.selectbox(key="group").options) == 4
    app.selectbox(key="group").select_index(3).run()
    assert not app.exception and answer_of(app) != before


def test_evaluate_offers_both_kinds_of_tasks_in_one_run(same_toy) -> None:
    app = open_page("evaluate")
    app.selectbox(key="task_kinds").set_value("tables").run()
    assert not app.exception and "in each of 4 testbeds" in texts(app)
    assert any("--side-by-side 1,5" in code.value for code in app.code)


def test_runs_open_after_the_dataset_is_gone(toy, tmp_path) -> None:
    import shutil

    run = record()
    shutil.rmtree(tmp_path / "ws" / "datasets" / "toy_pages")
    app = open_page("runs", "demo")
    assert "has no results yet." in answer_of(app)
    app.button(key="results_of_toy_pages").click().run()
    assert f"{max(r['accuracy'] for r in run.summary['results']):.1f} ±" in answer_of(app)
    assert "All of these runs are on" in texts(app)
    app.segmented_control(key="show").set_value("Errors").run()
    assert not app.exception and "No images: " in texts(app)


def test_a_class_table_without_features_is_explained(same_toy) -> None:
    app = open_page("evaluate", "tiered_imagenet")
    assert "has no images here" in texts(app) and "fsviz add" in texts(app) and not app.metric
    app = open_page("evaluate", "digits")
    assert any(button.label.startswith("Extract features") for button in app.button)


def test_runs_without_results_offer_a_first_one_and_what_the_dataset_lacks(toy) -> None:
    def spoil(values) -> None:
        values[:] = float("nan")

    save_toy_features(toy, "spoiled", spoil=spoil)
    with pytest.raises(FsvizError, match="NaN"):
        record(backbones=["spoiled"])
    app = open_page("runs")  # a run that failed has none
    assert "has no results yet." in answer_of(app) and "not computed here" in texts(app)
    assert app.button(key="first_run").label == "Run"
    app = open_page("runs", "tiered_imagenet")
    assert "fsviz add tiered_imagenet" in texts(app)
    assert any(button.label == "Open the demo" for button in app.button)
    assert "fsviz extract digits" in texts(open_page("runs", "digits"))


def test_every_mean_of_the_answers_has_an_interval(toy) -> None:
    record()
    for name in ("evaluate", "runs"):
        answer = answer_of(open_page(name)).replace("95% CI", "").partition("chance level")[0]
        numbers = re.findall(r"[\d.]+(?: ± [\d.]+)?(?:%| points)", answer)
        assert len(numbers) >= 2 and all("±" in number for number in numbers)


def test_a_click_on_a_curve_lists_its_tasks_and_the_link_keeps_them(toy) -> None:
    record()
    plain_page = open_page("runs")
    assert "tasks near" not in texts(plain_page) and "95% band for" in texts(plain_page)
    curves = json.loads(plain_page.get("plotly_chart")[1].proto.spec)["data"]
    assert sum(trace.get("fill") == "toself" for trace in curves) == 1  # bands of several methods would blend
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page("pages/runs.py")
    for name, value in {"dataset": "toy_pages", "near": "4", "band": "Ridge regression (R2D2)", "task": "3"}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception and not app.error
    assert "40 tasks near coarsity 4, hardest for Ridge" in texts(app) and "Task 3**" in texts(app)
    assert "95% band for Ridge" in texts(app)
    assert app.query_params["near"] == "4" and app.query_params["task"] == "3"
    listed = app.dataframe[0].value
    (ridge,) = (
        name for name, it in json.loads(app.dataframe[0].proto.columns).items() if "Ridge" in (it.get("label") or "")
    )
    assert listed[ridge].is_monotonic_increasing and len(listed) == 40
    app.button(key="forget_place").click().run()
    assert "near" not in app.query_params and "tasks near" not in texts(app)
    assert "fsviz evaluate toy_pages" in "\n".join(code.value for code in app.code)
    assert not app.get("json")  # recipes are words


def test_the_report_of_the_page_is_whole_small_and_asks_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsviz.analyses import run_comparison
    from fsviz.datasets.published import published_table
    from fsviz.reports import runs as report
    from fsviz.ui.pages.runs import exports
    from fsviz.ui.parts import recorded
    from tests.studies.shifted_dataset import make_shifted

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_shifted("toy_pages", backbones=("alpha_net",), root=tmp_path / "images")
    record(sampler={"sampler": "semantic", "n_way": 5, "n_shot": 1, "n_query": 5, "n_tasks": 40})
    app = open_page("runs")
    assert "another dataset (" in texts(app)
    run = jobs.list_runs()[0]
    lines = recorded.method_runs(run)
    comparison = run_comparison.compare(run_comparison.groups(lines), over="tasks")
    caveat = "Published rows are of another benchmark."
    recipes = [exports._recipe(run)]
    published = report.Published(published_table("better-tieredImageNet", "5-way 1-shot"), caveat)
    html = report.report(comparison, recipes, published=published)
    own = html.split("</head>", 1)[1]
    assert own.count('<img src="data:image/') == 2 * 6 and caveat in own  # support and query of three and three tasks
    assert len(own) < 600_000 and "http" not in own.replace("http://www.w3.org", "")
    assert "fsviz evaluate toy_pages" in own and "{&#39;" not in own and "n_query" not in own


def test_a_confused_pair_follows_its_settings_and_is_in_the_link(same_toy) -> None:
    app = open_page("evaluate")
    box = next(s for s in app.selectbox if s.label.startswith("Most confused pairs"))
    box.set_value(box.proto.options and list(dict.fromkeys(_pairs(app)))[1]).run()
    pair = app.session_state["pair"]
    assert app.query_params["pair"] in (pair, [pair]) and not app.toast
    for n_way in (3, 8):
        app.number_input(key="n_way").set_value(n_way).run()
        assert not app.exception and not app.toast
        box = next(s for s in app.selectbox if s.label.startswith("Most confused pairs"))
        shown = box.format_func(box.value) if box.format_func else box.value
        first, _, second = shown.partition(" (")[0].partition(" → ")
        said = texts(app).replace("\\", "")
        assert f"**{first}** queries in tasks with both classes are predicted as **{second}**" in said


def _pairs(app: AppTest) -> list[str]:
    from fsviz.analyses import run_comparison

    found: list[str] = []
    keep = run_comparison.pairs_table

    def spy(*args, **more):
        table = keep(*args, **more)
        found[:] = [f"{row.class_id}-{row.taken_for}" for row in table.itertuples(index=False)]
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_comparison, "pairs_table", spy)
        app.run()
    return found


def test_a_link_opens_evaluate_with_a_saved_testbed_and_no_toast(toy) -> None:
    for seed in (1, 2):
        save_testbed(evaluate.sample_testbed(toy, {"n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 20}, seed))
    name = evaluate.testbeds(toy)[1]
    for source in ("saved", "Saved testbed"):  # the identifier or the title
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page("pages/evaluate.py")
        for key, value in {"dataset": "toy_pages", "tasks_from": source, "testbeds": name}.items():
            app.query_params[key] = value
        app.run()
        assert not app.exception and not app.toast and app.multiselect(key="testbeds").value == [name]
        assert any("--testbed" in code.value and name in code.value for code in app.code)
    app.selectbox(key="tasks_from").set_value("draw").run()
    assert not app.exception and not app.toast and "testbeds" not in app.query_params


def test_tasks_are_those_of_the_method_that_was_chosen(same_toy) -> None:
    app = open_link("evaluate", dataset="toy_pages", show="Tasks")
    assert "% correct (ProtoNet)" not in texts(app)
    app.selectbox(key="whose").set_value("protonet@alpha_net").run()
    assert not app.exception and "% correct (ProtoNet)" in texts(app) and not app.toast
    bars = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["yaxis"]
    assert [name for name in bars["ticktext"] if name.startswith("<b>")] == ["<b>ProtoNet</b>"]


def test_accuracy_per_class_is_that_of_the_predictions(same_toy) -> None:
    app = open_link("evaluate", dataset="toy_pages", show="Accuracy per class", methods="protonet")
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


# --- which results the pages show --------------------------------------------------------------------------------

SMALL = {"n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 40}


def stopped(at: int, **more) -> jobs.Run:
    """A run of small chunks that was cancelled after so many of them."""

    def stop(done: int, total: int, message: str) -> None:
        if done == at:
            store.ask_to_stop(jobs.folder(jobs.list_runs()[0].id))

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Cancelled):
        for name in ("_WRITE_EVERY", "_SUMMARISE_EVERY"):
            patch.setattr(sys.modules["fsviz.jobs.execute"], name, 0.0)
        spec = {"study": "evaluate", "dataset": "toy_pages", "backbones": ["alpha_net"], "device": "cpu", "chunk": 10}
        spec |= {"methods": ["protonet", "ridge"], "sampler": {"sampler": "semantic", **SMALL}, **more}
        jobs.run_in_foreground(spec, stop)
    return jobs.list_runs()[0]


def open_link(name: str, **asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page(f"pages/{name}.py")
    for key, value in asked.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception[0].value
    return app


def test_runs_shows_the_chosen_dataset_and_others_by_choice(toy) -> None:
    make_toy("other_toy", noise=0.1)
    mine = record()
    other = record(dataset="other_toy")  # newer, and easier
    best = {run.id: max(r["accuracy"] for r in run.summary["results"]) for run in (mine, other)}
    for dataset, run in (("toy_pages", mine), ("other_toy", other)):
        app = open_page("runs", dataset)
        assert f"{best[run.id]:.1f} ± " in answer_of(app) and "of these runs are on" not in texts(app)
        assert f"finished runs on **{dataset.title().replace('_', chr(92) + '_')}" in texts(app)
    app = open_link("runs", dataset="toy_pages", runs=other.id)  # others by choice, and it says so
    assert f"{best[other.id]:.1f} ± " in answer_of(app) and "of these runs are on" in texts(app)
    app.button(key="own_results").click().run()
    assert f"{best[mine.id]:.1f} ± " in answer_of(app) and "runs" not in app.query_params
    app.selectbox(key="dataset_picker").set_value("other_toy").run()
    assert f"{best[other.id]:.1f} ± " in answer_of(app)
    app.multiselect(key="runs").set_value([other.id]).run()
    app.selectbox(key="dataset_picker").set_value("toy_pages").run()  # what was chosen belongs to the other dataset
    assert f"{best[mine.id]:.1f} ± " in answer_of(app) and not app.exception
    app = open_page("runs", "demo")
    assert "has no results yet" in answer_of(app)
    app.button(key="results_of_toy_pages").click().run()
    assert f"{best[mine.id]:.1f} ± " in answer_of(app) and app.query_params["dataset"] in (
        "toy_pages",
        ["toy_pages"],
    )


def test_a_finished_run_replaces_the_preview(toy) -> None:
    app = open_page("evaluate")
    assert "Preview: 200 tasks" in texts(app) and "finished" not in texts(app)
    shape = {"sampler": "semantic", "split": "test", "n_way": 5, "n_shot": 5, "n_query": 10, "n_tasks": 1000}
    run = record(methods=["bd_cspn", "ridge", "simpleshot", "protonet", "knn"], sampler=shape)
    app = open_page("evaluate")
    assert f"Run {run.id}: 1,000 tasks" in answer_of(app) and "Full run finished" in texts(app)
    assert "Preview" not in texts(app) and not any(button.key == "start" for button in app.button)
    chosen = [r for r in run.summary["results"] if r["method"] != "knn"]
    best = max(chosen, key=lambda r: r["accuracy"])
    assert accuracy_in(answer_of(app)) == f"{best['accuracy']:.1f} ± {best['ci95_classes']:.1f}%"
    assert answer_of(app).startswith(f"**{best['label']} is ")
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
    assert answer_of(app).startswith("**Of 3 of 4 methods, ")
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
    run = stopped(5, methods=methods, sampler=shape)
    app = open_link("evaluate", dataset="toy_pages", n_tasks="60")
    assert "was cancelled" in texts(app) and "Preview" in texts(app)
    app.button(key="resume").click().run()
    assert not app.exception and jobs.wait(run.id, 120).state == "finished"
    app = open_link("evaluate", dataset="toy_pages", n_tasks="60")
    assert "Full run finished" in texts(app) and [r.id for r in jobs.list_runs()] == [run.id]


def test_partial_runs_are_compared_on_common_tasks_and_resumed(toy) -> None:
    run = stopped(5)
    app = open_page("runs")
    assert "All methods are compared on the 20 tasks" in texts(app) and "20 tasks" in answer_of(app)
    assert "Of 40 tasks Ridge" in texts(app)
    run_2 = stopped(3, seed=1)
    app = open_link("runs", dataset="toy_pages", runs=run_2.id)
    assert "1 method without results yet." in answer_of(app) and "no results yet of Ridge" in texts(app)
    app.button(key="resume_compared").click().run()
    assert not app.exception and jobs.wait(run_2.id, 120).state == "finished"
    assert jobs.status(run.id).state == "cancelled"


def test_page_terminal_and_report_give_one_answer(toy, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from fsviz.cli import main

    run = record(methods=["protonet", "simpleshot", "ridge", "knn"])
    app = open_page("runs")
    assert "95% CI over classes" in answer_of(app)
    shown = next(frame.value for frame in app.dataframe if "p_holm" in frame.value)
    verdicts = shown["verdict"].tolist()
    assert main(["runs", "show", run.id]) == 0
    printed = capsys.readouterr().out
    assert "95% CI over classes" in printed
    assert [printed.count("  significant"), printed.count("  not significant")] == [
        verdicts.count("significant"),
        verdicts.count("not significant"),
    ]
    assert main(["report", run.id, "--out", str(tmp_path / "r.html")]) == 0
    report = (tmp_path / "r.html").read_text().partition("Paired differences, task by task")[2].partition("</table>")[0]
    for verdict in ("significant", "not significant"):
        assert report.count(f">{verdict}<") == verdicts.count(verdict)
    assert len(verdicts) == 3


def _htmls(app: AppTest) -> list[str]:
    return [str(element.proto.body) for element in app.get("html")]


def test_every_interval_of_the_page_follows_the_choice(toy) -> None:
    record()
    seen = {}
    for over in ("tasks", "images", "classes"):
        app = open_link("runs", dataset="toy_pages", over=over)
        assert f"over {over}" in texts(app)
        differences, curves = (json.loads(chart.proto.spec)["data"] for chart in app.get("plotly_chart")[:2])
        seen[over] = [answer_of(app), str(curves[0]["y"]), str(differences[0]["error_x"]["array"])]
        seen[over].append(next(html for html in _htmls(app) if "<table" in html))
        others = {f"CI over {unit}" for unit in ("tasks", "images", "classes") if unit != over}
        assert not any(words in texts(app) for words in others), over
    for i in range(4):  # an interval over images is at most as wide as the one over classes, and may be the same
        assert seen["tasks"][i] not in (seen["images"][i], seen["classes"][i]), i
    assert seen["images"][0] != seen["classes"][0]
