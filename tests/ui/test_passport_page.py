"""The page One task without a browser: a link names the task, an error is one sentence, every page leads there, and
selections go along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets, jobs
from fsviz.analyses import task_profile as study
from fsviz.records import Tasks
from fsviz.sampling import testbeds
from fsviz.tasks import draw, task_ids
from fsviz.text import escape_markdown
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import in_workspace, link_of, open_link

PAGE = "task"
SHAPE = {"sampler": "uniform", "n_way": 4, "n_shot": 3, "n_query": 5, "n_tasks": 60}


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests: what pages compute of the same tasks is computed once."""
    with in_workspace(tmp_path_factory):
        make_toy("toy", noise=2.0)
        bed = draw.sample(datasets.load("toy"), name="odd", **{**SHAPE, "n_tasks": 300})
        shuffled = bed.tasks.take(np.arange(300)[::-1])
        testbeds.save_testbed(type(bed)("odd", shuffled, {"dataset": "toy", "sampler": "imported"}))
        yield


def name() -> str:
    bed = draw.sample(datasets.load("toy"), **SHAPE)
    return task_ids.name_testbed(datasets.load("toy"), bed.tasks, bed.recipe)


def press(app: AppTest, label: str) -> AppTest:
    next(b for b in app.button if b.label == label).click().run()
    assert not app.exception and not app.error
    return app


def captions(app: AppTest) -> str:
    return "\n".join(c.value for c in app.caption)


def answer(app: AppTest) -> str:
    """The answer below the lead of the page."""
    return next(m.value for m in app.markdown if " of the queries correct" in m.value or " queries correct" in m.value)


def test_the_answer_is_that_of_the_engine_and_follows_the_method() -> None:
    testbed = task_ids.find(name(), datasets.load("toy"))
    profile = study.open_task(testbed, 7, "alpha_net")
    methods = [result.method for result in profile.results]
    among = study.values_among_tasks(testbed, "alpha_net", methods=methods)
    profile = study.with_values_among_tasks(profile, among)
    app = open_link(PAGE, "toy", task_name=f"{name()}:7")
    sentence, more = study.headline(profile, among, profile.results[0])
    assert answer(app) == f"**{escape_markdown(sentence)}** {escape_markdown(more)}" and "mean of 60 tasks" in sentence
    assert not app.metric
    second = profile.results[1]
    app.selectbox(key="answers_of").set_value(second.key).run()
    sentence, more = study.headline(profile, among, second)
    assert answer(app) == f"**{escape_markdown(sentence)}** {escape_markdown(more)}"
    assert f"{second.label} (4-way 3-shot, alpha_net): {100 * second.accuracy:.0f}% of the 20 queries" in sentence


def test_a_task_is_in_the_link_and_gone_through() -> None:
    app = open_link(PAGE, "toy", task_name=f"{name()}:7")
    assert not app.toast and link_of(app) == {"task_name": f"{name()}:7"}
    assert "Task 7 of" in captions(app) and "all 60 tasks" in captions(app)
    assert f"passport '{name()}:7' --backbone alpha_net" in app.code[0].value
    assert link_of(press(app, "Next")) == {"task_name": f"{name()}:8"} and "Task 8 of" in captions(app)
    app.number_input(key="go_to").set_value(21).run()
    assert link_of(app) == {"task_name": f"{name()}:21"} and "Task 21 of" in captions(app)
    app.number_input(key="go_to").set_value(8).run()
    app.selectbox(key="through").set_value("coarsity").run()
    bed = draw.sample(datasets.load("toy"), **SHAPE).tasks.measures["coarsity"]
    before = np.lexsort((np.arange(60), bed)).tolist()
    assert link_of(press(app, "Previous"))["task_name"] == f"{name()}:{before[before.index(8) - 1]}"


def test_two_tasks_stand_side_by_side() -> None:
    app = press(open_link(PAGE, "toy", task_name=f"{name()}:7"), "Compare with next")
    assert link_of(app) == {"task_name": f"{name()}:7", "other": f"{name()}:8"}
    shared = open_link(PAGE, "toy", **link_of(app))
    for page in (app, shared):
        assert "**This task**: task 7 of" in captions(page) and "**Other task**: task 8 of" in captions(page)
        assert "in the other task." in answer(page) and "They differ most by" in answer(page)
    assert link_of(press(app, "Swap")) == {"task_name": f"{name()}:8", "other": f"{name()}:7"}
    assert link_of(press(app, "Stop comparing")) == {"task_name": f"{name()}:8"}


def test_the_task_says_its_dataset() -> None:
    app = AppTest.from_file(str(Path(__file__).parents[2] / "app.py"), default_timeout=600)
    app = app.switch_page(f"pages/{PAGE}.py")
    app.query_params["task_name"] = f"{name()}:7"
    app.run()
    assert not app.exception and not app.error and "Task 7 of" in captions(app)
    assert app.query_params["dataset"] in ("toy", ["toy"])
    app.selectbox(key="dataset_picker").set_value("cifar100").run()  # another dataset: another task
    assert link_of(app)["task_name"].startswith("drawn~cifar100~") and not app.error
    assert "only class names, taxonomy and coarsity are available" in captions(app)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("rubbish", "as a link to its passport has it"),
        ("drawn~toy~n_way-4~0123456789ab:0", "other images or classes of"),
        ("drawn~nowhere~n_way-4~0123456789ab:0", "is of the dataset 'nowhere', which is not here"),
        ("saved~toy~mine~0123456789ab:0", "testbed 'mine' of Toy is not in this workspace"),
        ("run~toy~r1~0~0123456789ab:0", "not in this workspace"),
        ("{name}:60", "Got 60. Choose another"),
    ],
)
def test_a_link_that_leads_nowhere_is_one_sentence(task: str, words: str) -> None:
    task = task.replace("{name}", name())
    app = open_link(PAGE, "toy", fine=False, task_name=task)
    (error,) = app.error
    assert words in error.value.replace("\\", "").replace(":gray[]", "")
    assert link_of(press(app, "Open an example task"))["task_name"].startswith("drawn~toy~")
    assert "Task 0 of" in captions(app)


def test_runs_of_the_testbed_give_the_answer() -> None:
    spec = {
        "study": "evaluate",
        "dataset": "toy",
        "backbones": ["alpha_net"],
        "methods": ["knn", "tim"],
        "sampler": SHAPE,
    }
    run = jobs.run_in_foreground(spec)
    app = open_link(PAGE, "toy", task_name=f"{name()}:7")
    assert answer(app).startswith("**Nearest neighbours (4-way 3-shot, ")
    assert f"From run {run.id}" in captions(app).replace("\\", "")
    (runs,) = leads_of(open_link("runs", "toy", near="10"), 1)
    assert runs.testbed == name()  # drawn by the same recipe
    jobs.delete(run.id)


# Linked ------------------------------------------------------------------------------------------------------------


def leads_of(app: AppTest, n: int | None = None) -> list:
    links = [link.proto for link in app.main.get("page_link") if "task_name=" in link.proto.query_string]
    linked_tasks = [task_ids.parse_task_id(parse_qs(link.query_string)["task_name"][0]) for link in links]
    assert n is None or len(linked_tasks) == n, linked_tasks
    return linked_tasks


@pytest.mark.parametrize(
    ("page", "settings", "kind"),
    [
        ("sample_tasks", {"n_tasks": "50", "n_shot": "2"}, "drawn"),
        ("sample_tasks", {"n_tasks": "50", "n_shot": "0"}, "drawn"),
        ("evaluate", {"n_tasks": "50", "methods": "protonet", "show": "Tasks"}, "drawn"),
        ("evaluate", {"tasks_from": "saved", "testbeds": "odd", "methods": "protonet", "show": "Tasks"}, "saved"),
        ("hard_supports", {"n_tasks": "20"}, "drawn"),
        ("predict_accuracy", {"n_tasks": "50", "task": "3"}, "drawn"),
        ("image_map", {"testbed": "drawn", "position": "5"}, "drawn"),
        ("image_map", {"testbed": "odd", "position": "5"}, "saved"),
        ("edit_task", {}, "hand"),
    ],
)
def test_every_page_that_shows_a_task_leads_to_its_passport(page: str, settings: dict, kind: str) -> None:
    app = open_link(page, "toy", **settings)
    (task,) = leads_of(app, 1)
    assert task.testbed.startswith(f"{kind}~toy~")
    drawn_task = task_ids.find(task.testbed).tasks.take([task.position])
    swaps = [link.proto for link in app.main.get("page_link") if link.proto.page == "edit_task"]
    if drawn_task.has_images and page not in ("hard_supports", "edit_task"):  # the very task, image by image
        swap = parse_qs(swaps[-1].query_string)
        assert swap["query"] == [text(drawn_task, "query")] and swap["support"] == [text(drawn_task, "support")]


def text(tasks: Tasks, side: str) -> str:
    return ",".join(".".join(map(str, row)) for row in getattr(tasks, side)[0].tolist())


def go(app: AppTest, page: str, **query: str) -> AppTest:
    app.query_params.clear()
    for key, value in {"dataset": "toy", **query}.items():
        app.query_params[key] = value
    app.switch_page(f"pages/{page}.py").run()
    assert not app.exception and not app.error, [e.value for e in app.error]
    return app


def test_classes_that_are_picked_go_along() -> None:
    picked = ["group 0 <b>kind</b> 1", "group 2 <b>kind</b> 3"]
    app = open_link("classes", "toy")
    app.multiselect(key="classes").set_value(picked).run()
    assert go(app, "confusion").multiselect(key="classes").value == picked
    assert list(app.query_params["classes"]) == picked  # in the link at once
    go(app, "predict_accuracy", n_tasks="20")  # a page between that takes none
    assert go(app, "image_map").multiselect(key="classes").value == picked
    go(app, "edit_task")
    assert link_of(app)["task_of"] == ",".join(picked)
    assert go(app, "classes", classes=picked[0]).multiselect(key="classes").value == picked[:1]  # the link decides
    app.multiselect(key="classes").set_value([]).run()
    assert go(app, "confusion").multiselect(key="classes").value == []


def test_a_task_that_is_picked_goes_along() -> None:
    app = open_link("predict_accuracy", "toy", n_tasks="50", task="3")
    (first,) = leads_of(app, 1)
    assert link_of(go(app, PAGE))["task_name"] == str(first)  # the task that was looked at last
    press(app, "Next")
    next_task = task_ids.find(first.testbed).tasks.take([first.position + 1])
    built = link_of(go(app, "edit_task"))
    assert built["support"] == text(next_task, "support") and built["query"] == text(next_task, "query")
    on_map = link_of(go(app, "image_map"))
    assert on_map["testbed"] == "linked" and on_map["query"] == text(next_task, "query")
