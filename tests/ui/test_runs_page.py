"""The page Runs without a browser: comparisons, intervals, partial and damaged runs, export of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.errors import FsvizError
from fsviz.jobs import store
from tests.studies.toy_dataset import make_toy, save_toy_features
from tests.ui.evaluation import SMALL, accuracy_in, answer_of, cancelled_run, open_page, record, texts


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Class names with HTML in them; features; an empty list of runs."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy("toy_pages", noise=2.0)


def test_runs_compare_and_survive_damage(toy, tmp_path) -> None:
    good = record()
    broken = record(seed=1)
    (jobs.folder(broken.id) / "spec.json").write_text("{ not json")

    def spoil(values) -> None:
        values[:] = float("nan")

    save_toy_features(toy, "spoiled", spoil=spoil)
    with pytest.raises(FsvizError, match="NaN"):
        record(backbones=["spoiled"])
    app = open_page("runs", show="All runs")
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
    app = open_page("runs", show="All runs")
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
    app = open_page("runs", show="All runs", filter="LINE try")
    assert app.dataframe[-1].value["run"].tolist() == [first.id] and not app.toast
    titles = app.multiselect(key="runs").options
    assert [title.startswith("Base *line* · ") for title in titles] == [False, True] and second.id[-4:] in titles[0]


def test_a_cancelled_run_shows_its_partial_results(toy) -> None:
    run = cancelled_run(3, methods=["protonet"], sampler={"sampler": "semantic", **SMALL, "n_tasks": 60})
    assert run.state == "cancelled" and run.summary and 0 < run.n_done < run.n_chunks
    app = open_page("runs")
    assert f"** {10 * run.n_done:,} tasks, 95% CI" in answer_of(app)


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
        app = open_page("runs", show="Errors")
        assert f"** {n_tasks:,} tasks, 95% CI" in answer_of(app)
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


def test_a_click_on_a_curve_lists_its_tasks_and_the_link_keeps_them(toy) -> None:
    record()
    plain_page = open_page("runs")
    assert "tasks near" not in texts(plain_page) and "95% band for" in texts(plain_page)
    curves = json.loads(plain_page.get("plotly_chart")[1].proto.spec)["data"]
    assert sum(trace.get("fill") == "toself" for trace in curves) == 1  # bands of several methods would blend
    app = open_page("runs", near="4", band="Ridge regression (R2D2)", task="3")
    assert not app.error
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


def test_runs_shows_the_chosen_dataset_and_others_by_choice(toy) -> None:
    make_toy("other_toy", noise=0.1)
    toy_run = record()
    other_run = record(dataset="other_toy")  # newer, and easier
    best = {run.id: max(r["accuracy"] for r in run.summary["results"]) for run in (toy_run, other_run)}
    for dataset, run in (("toy_pages", toy_run), ("other_toy", other_run)):
        app = open_page("runs", dataset)
        assert f"{best[run.id]:.1f} ± " in answer_of(app) and "of these runs are on" not in texts(app)
        assert f"finished runs on **{dataset.title().replace('_', chr(92) + '_')}" in texts(app)
    app = open_page("runs", runs=other_run.id)  # others by choice, and it says so
    assert f"{best[other_run.id]:.1f} ± " in answer_of(app) and "of these runs are on" in texts(app)
    app.button(key="own_results").click().run()
    assert f"{best[toy_run.id]:.1f} ± " in answer_of(app) and "runs" not in app.query_params
    app.selectbox(key="dataset_picker").set_value("other_toy").run()
    assert f"{best[other_run.id]:.1f} ± " in answer_of(app)
    app.multiselect(key="runs").set_value([other_run.id]).run()
    app.selectbox(key="dataset_picker").set_value("toy_pages").run()  # what was chosen belongs to the other dataset
    assert f"{best[toy_run.id]:.1f} ± " in answer_of(app) and not app.exception
    app = open_page("runs", "demo")
    assert "has no results yet" in answer_of(app)
    app.button(key="results_of_toy_pages").click().run()
    assert f"{best[toy_run.id]:.1f} ± " in answer_of(app) and app.query_params["dataset"] in (
        "toy_pages",
        ["toy_pages"],
    )


def test_partial_runs_are_compared_on_common_tasks_and_resumed(toy) -> None:
    run = cancelled_run(5)
    app = open_page("runs")
    assert "All methods are compared on the 20 tasks" in texts(app) and "20 tasks" in answer_of(app)
    assert "Of 40 tasks Ridge" in texts(app)
    run_2 = cancelled_run(3, seed=1)
    app = open_page("runs", runs=run_2.id)
    assert "1 method without results yet." in answer_of(app) and "no results yet of Ridge" in texts(app)
    app.button(key="resume_compared").click().run()
    assert not app.exception and jobs.wait(run_2.id, 120).state == "finished"
    assert jobs.status(run.id).state == "cancelled"


def test_page_terminal_and_report_give_one_answer(toy, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from fsviz.cli import main

    run = record(methods=["protonet", "simpleshot", "ridge", "knn"])
    app = open_page("runs")
    assert "95% CI over classes" in answer_of(app)
    comparison = next(frame.value for frame in app.dataframe if "p_holm" in frame.value)
    verdicts = comparison["verdict"].tolist()
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
    intervals = {}
    for over in ("tasks", "images", "classes"):
        app = open_page("runs", over=over)
        assert f"over {over}" in texts(app)
        differences, curves = (json.loads(chart.proto.spec)["data"] for chart in app.get("plotly_chart")[:2])
        intervals[over] = [answer_of(app), str(curves[0]["y"]), str(differences[0]["error_x"]["array"])]
        intervals[over].append(next(html for html in _htmls(app) if "<table" in html))
        other_captions = {f"CI over {unit}" for unit in ("tasks", "images", "classes") if unit != over}
        assert not any(words in texts(app) for words in other_captions), over
    for i in range(4):  # an interval over images is at most as wide as the one over classes, and may be the same
        assert intervals["tasks"][i] not in (intervals["images"][i], intervals["classes"][i]), i
    assert intervals["images"][0] != intervals["classes"][0]
