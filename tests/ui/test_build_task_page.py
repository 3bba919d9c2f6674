"""The page Edit a task without a browser: the task is in the link, a swap is the answer, errors are sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest

from fsviz import datasets, features
from fsviz.analyses import custom_task
from fsviz.sampling.testbeds import list_testbeds
from fsviz.ui.pages import edit_task
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import in_workspace, link_of, open_link
from tests.ui.test_gallery_pages import texts

PAGE = "edit_task"
TASK = {"task_of": "#0,#1,#5", "support": "0.1,24.25,120.121", "query": "2.3.4,26.27.28,122.123.124"}


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests: what pages compute of the same tasks is computed once."""
    with in_workspace(tmp_path_factory):
        make_toy("built", noise=2.0)
        yield


def answer(app) -> str:
    """The answer below the lead of the page."""
    return next(m.value for m in app.markdown if "queries correct (" in m.value)


def captions(app) -> str:
    return "\n".join(c.value for c in app.caption)


def test_the_page_begins_with_a_task_and_says_how_many_queries() -> None:
    app = open_link(PAGE, "built")
    count, n_queries, percent = map(
        int, re.search(r"\*\*(\d+) of (\d+) queries correct \((\d+)%\)", answer(app)).groups()
    )
    assert (
        n_queries == 50
        and percent == round(100 * count / 50)
        and "5-way 5-shot, chance level: 20%." in answer(app).replace("\\", "")
    )
    assert not app.metric
    assert not link_of(app) and not app.toast
    measures = app.dataframe[0].value
    assert {"Coarsity", "Class overlap (Louvain)", "Support separation (cosine)", "Query loss"} <= set(
        measures["measure"]
    )
    assert "no attributes" in captions(app)
    (missing,) = [c for c in app.caption if "not available here" in c.value]
    titles = {title for line in missing.help.split("\n\n") for title in line.split(": ")[0].split(", ")}
    assert "Context overlap" in titles and missing.value.startswith(f"{len(titles)} measures")


def test_a_whole_task_is_read_from_the_link_and_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_task, "MAX_TILES", 2)
    app = open_link(PAGE, "built", **TASK)
    assert "First 2 of up to 3 images per class; all of them count." in captions(app)
    names = {**TASK, "task_of": "group 0 <b>kind</b> 0,group 0 <b>kind</b> 1,group 1 <b>kind</b> 1"}
    assert not app.toast and link_of(app).items() <= names.items() | TASK.items()
    assert "of 9 queries correct" in answer(app)
    assert "--support 0.1,24.25,120.121" in app.code[0].value
    app.run()
    assert link_of(app)["support"] == TASK["support"]


def test_a_swap_in_the_link_is_the_answer_and_can_be_undone() -> None:
    dataset = datasets.load("built")
    table = features.load(dataset, "alpha_net")
    rows = [custom_task.images_in(TASK[side]) for side in ("support", "query")]
    tasks = custom_task.build(dataset, table, [0, 1, 5], support=rows[0], query=rows[1])
    now, before = (
        custom_task.evaluate_task(dataset, "alpha_net", of) for of in (tasks, custom_task.swap_image(tasks, 0, 9))
    )
    app = open_link(PAGE, "built", **TASK, swap="9.0")
    sentence, more = custom_task.headline(now, custom_task.compare_results(before, now))
    assert answer(app) == f"**{sentence}** {more}" and f"Now {now.n_correct} of 9 queries correct" in more
    assert not app.metric
    measures = app.dataframe[0].value.set_index("measure")
    assert measures.loc["Coarsity", "change"] == "the same"
    assert measures.loc["Query loss", "change"].endswith(("harder", "easier"))
    assert "--swap 9.0" in app.code[0].value and "--support 9.1,24.25" in app.code[0].value
    next(b for b in app.button if b.label == "Undo").click().run()
    assert not app.exception and link_of(app)["support"] == "9.1,24.25,120.121" and "swap" not in link_of(app)
    assert answer(app).startswith(f"**{before.n_correct} of 9 queries correct")


def test_classes_that_stay_keep_their_images() -> None:
    app = open_link(PAGE, "built", **TASK)
    app.multiselect(key="class_picker").set_value([5, 0]).run()
    assert not app.exception and not app.error
    assert link_of(app)["support"] == "120.121,0.1" and link_of(app)["query"] == "122.123.124,2.3.4"


def test_other_numbers_of_images_sample_other_images() -> None:
    app = open_link(PAGE, "built", **TASK)
    app.number_input(key="n_query").set_value(5).run()
    assert not app.exception and "of 15 queries correct" in answer(app) and "support" not in link_of(app)


def test_nonsense_in_the_link_is_a_sentence_and_a_way_on() -> None:
    app = open_link(PAGE, "built", fine=False, task_of="griffin")
    assert "griffin" in app.error[0].value and "queries correct" in answer(app)
    app = open_link(PAGE, "built", fine=False, task_of="#0,#1", support="24,0", query="2,26")
    assert "image 24 is of class" in app.error[0].value
    next(b for b in app.button if b.label == "Resample images").click().run()
    assert not app.error and "queries correct" in answer(app)


def test_the_task_is_saved_and_leads_to_evaluate() -> None:
    app = open_link(PAGE, "built", **TASK)
    app.button(key="save_built").click().run()
    assert list_testbeds() == ["by_hand"] and not app.error
    (there,) = [
        link for link in app.main.get("page_link") if "Evaluate" in link.proto.page or "Evaluate" in link.proto.label
    ]
    assert "testbeds=by_hand" in there.proto.query_string and "tasks_from=saved" in there.proto.query_string


def test_without_features_the_page_says_what_is_missing() -> None:
    assert "has no features" in open_link(PAGE, "tiered_imagenet").info[0].value
    assert "fsviz extract digits" in open_link(PAGE, "digits").info[0].value


def to_build(app) -> list[str]:
    return [link.proto.query_string for link in app.main.get("page_link") if "task_of=" in link.proto.query_string]


def test_images_selected_in_the_gallery_become_the_support_of_a_task() -> None:
    app = open_link("images", "demo", selected="3803.3804")
    assert "2 images selected:" in texts(app) and not to_build(app), "a task needs two classes"
    app = open_link("images", "demo", selected="3803.0.3804")
    assert not app.toast
    (query,) = to_build(app)
    task = {key: values[0] for key, values in parse_qs(query).items()}
    assert task["support"] == "3803.3804,0" and task["task_of"].startswith("tiger,")
    assert len(task["query"].split(",")) == 2 and "3803" not in task["query"].replace(",", ".").split(".")
    edited = open_link(PAGE, "demo", **{key: task[key] for key in ("task_of", "support", "query")})
    assert not edited.exception and not edited.error and len(edited.multiselect(key="class_picker").value) == 2
    app.button(key="clear_selection").click().run()
    assert not app.exception and "selected" not in link_of(app) and "selected:" not in texts(app)


def test_classes_of_the_taxonomy_and_of_confusion_lead_here() -> None:
    names = ["tiger", "wolf", "pear"]
    app = open_link("classes", "demo", classes=names)
    assert any(parse_qs(query)["task_of"] == ["tiger,wolf,pear"] for query in to_build(app))
    app = open_link("confusion", "demo", classes=names[:2])
    assert any(parse_qs(query)["task_of"] == ["tiger,wolf"] for query in to_build(app))
    app = open_link("confusion", "demo", classes=names[:1])
    (query,) = to_build(app)
    classes = parse_qs(query)["task_of"][0].split(",")
    assert classes[0] == "tiger" and len(set(classes)) == 5


def test_a_task_leads_to_the_map_where_it_stands_out() -> None:
    app = open_link(PAGE, "built", **TASK)
    (map_link,) = [link for link in app.main.get("page_link") if link.proto.page == "image_map"]
    settings = {key: values[0] for key, values in parse_qs(map_link.proto.query_string).items()}
    assert settings["support"] == TASK["support"] and settings["query"] == TASK["query"]
    app = open_link("image_map", **settings)
    assert not app.toast and link_of(app)["support"] == TASK["support"]
    assert "3-way 2-shot task" in texts(app).replace("\\", "") and "of 9 queries correctly" in texts(app)
    (query,) = to_build(app)
    assert parse_qs(query)["support"] == [TASK["support"]]
    app = open_link("image_map", **{**settings, "support": "0.1,24.25,99999.3"})
    assert "Got image 99999" in app.warning[0].value
