"""Every page, and every section of it, with hostile names in every place that takes one: what is sent to the browser
shows them as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Selectbox

from fsviz.text import escape_markdown, escape_plotly
from fsviz.ui.parts import deferred
from fsviz.ui.parts.page import PAGES
from tests.hostile import LINK, NAMES, PICTURE, make_hostile, make_hostile_run

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = [page.file for page in PAGES.values()]
# Few and small tasks, for the pages that draw some: the names are the same. Only what a page knows is in its link.
SMALL = {"n_tasks": "50", "n_way": "3", "n_shot": "2", "n_query": "4", "methods": "protonet", "starts": "2"}
# What the browser does not read as Markdown: whole elements, and what others hold besides their texts.
NO_MARKDOWN = {
    "json",
    "code",
    "echarts_chart",
    "id",
    "key",
    "options",
    "raw_value",
    "raw_values",
    "default",
    "value",
    "url",
}
NO_MARKDOWN |= {"query_string", "page", "page_script_hash", "query_param_key", "placeholder"}
MARKS = [name for name in NAMES if escape_markdown(name) != name]


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home / "ws"))
        make_hostile_run(make_hostile(home / "images"))
        yield


def open_page(file: str, **query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.session_state[deferred.STANDS] = True  # its figures are there
    app.switch_page(file)
    for name, value in {"dataset": "hostile", **query}.items():
        app.query_params[name] = value
    return look(app.run())


def look(app: AppTest) -> AppTest:
    """Nothing fell over, and no name is sent in a way that makes it more than text."""
    assert not app.exception, app.exception[0].value
    for kind, field, text in sent(app):
        if kind == "html":
            assert not any(name in text for name in NAMES if "<" in name), text
        elif kind == "plotly_chart" and field == "spec":
            for name in NAMES:
                assert escape_plotly(name) == name or json.dumps(name)[1:-1] not in text, (name, text)
        elif field == "columns":  # headers are drawn as they are, tooltips are Markdown
            tooltips = [column.get("help") or "" for column in json.loads(text).values()]
            assert not any(name in tooltip for name in MARKS for tooltip in tooltips), tooltips
        elif not {kind, field} & NO_MARKDOWN:
            for name in MARKS:
                assert name not in text, f"{kind}.{field}: {text}"
    return app


def sent(app: AppTest) -> Iterator[tuple[str, str, str]]:
    """(kind of element, field, text) of everything that is sent to the browser."""
    for block in (app.main, app.sidebar):
        for node in block:
            if isinstance(node.proto, Message):
                yield from ((node.type, field, text) for field, text in strings(node.proto))


def strings(message: Message) -> Iterator[tuple[str, str]]:
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        for item in values:
            if isinstance(item, str):
                yield field.name, item
            elif isinstance(item, Message):
                yield from strings(item)


def texts(app: AppTest) -> str:
    return "\n".join(text for kind, field, text in sent(app) if not {kind, field} & NO_MARKDOWN)


@pytest.mark.parametrize("file", FILES)
def test_names_are_letters_on_every_page_and_in_every_section(file: str) -> None:
    app = open_page(file, **SMALL)
    if file != PAGES["learn"].file:  # which is about the demo
        assert escape_markdown(PICTURE) in texts(app), "a page says of which dataset it is, by its title"
    visited = walk(app, {"show", "dataset_picker"})  # the sections come below, the dataset stays
    for section in next((control.options for control in app.segmented_control if control.key == "show"), ()):
        app = open_page(file, show=section, **SMALL)
        assert app.segmented_control(key="show").value == section and not app.error, section
        visited = walk(app, visited)


def walk(app: AppTest, visited: set[str]) -> set[str]:
    """Opens every view and the first hostile option of every list, except visited ones; returns the visited keys."""
    views = {control.key: control.options for control in app.segmented_control if control.key not in visited}
    lists = {box.key: first_hostile_option(box) for box in app.selectbox if box.key not in visited}
    for key, option in [(key, option) for key, options in views.items() for option in options]:
        if key in {control.key for control in app.segmented_control}:
            look(app.segmented_control(key=key).set_value(option).run())
    for key, place in lists.items():
        if place is not None and key in {box.key for box in app.selectbox}:
            look(app.selectbox(key=key).select_index(place).run())
    return visited | set(views) | set(lists)


def first_hostile_option(box: Selectbox) -> int | None:
    """Position of the first option with a hostile name that is not selected yet; None without one."""
    places = (i for i, words in enumerate(box.options) if i != box.index and any(name in words for name in NAMES))
    return next(places, None)


def test_overview() -> None:
    app = open_page(PAGES["overview"].file)
    assert escape_markdown(PICTURE) in texts(app) and escape_markdown(LINK) in texts(app)
    assert f"Classes in split {escape_markdown('test')}" in [metric.label for metric in app.metric]


def test_gallery() -> None:
    app = open_page("pages/images.py")
    for name in ("by", "contexts", "classes"):
        box = app.multiselect(key=name)
        look(box.set_value(box.options[:2]).run())
        look(app.multiselect(key=name).set_value([]).run())
    look(app.multiselect(key="by").set_value(app.multiselect(key="by").options).run())
    assert escape_markdown(NAMES[3]) in [m.label for m in app.multiselect] + [s.label for s in app.slider]
    assert escape_markdown(PICTURE) in texts(app)


def test_taxonomy() -> None:
    app = open_page("pages/classes.py")
    box = app.multiselect(key="classes")
    look(box.set_value(box.options[:6]).run())
    assert sum(escape_markdown(name) in texts(app) for name in NAMES) >= 4


def test_tasks() -> None:
    app = open_page("pages/sample_tasks.py", **SMALL)
    app.text_input(key="testbed_name").set_value(PICTURE).run()
    look(app)
    look(app.button(key="save_testbed").click().run())
    assert escape_markdown(PICTURE) in app.error[0].value


def test_evaluate() -> None:
    app = open_page("pages/evaluate.py", **SMALL)
    look(app.multiselect(key="backbones").set_value([LINK, PICTURE]).run())
    assert escape_markdown(PICTURE) in texts(app)
    look(app.selectbox(key="tasks_from").set_value("saved").run())
    assert "95% CI over" in texts(app) and escape_markdown(LINK) in texts(app)


def test_runs() -> None:
    app = open_page("pages/runs.py")
    page_text = texts(app)
    assert escape_markdown(LINK) in page_text and escape_markdown(PICTURE) in page_text
    assert f"Testbed {escape_markdown(PICTURE)}" in page_text
    for section in app.segmented_control(key="show").options:
        look(app.segmented_control(key="show").set_value(section).run())
        for name in app.selectbox(key="band").options:
            look(app.selectbox(key="band").set_value(name).run())


def test_a_task_of_a_testbed() -> None:
    app = open_page("pages/task.py", task_name="brought:0", other="brought:1", pairs="answers")
    assert "**Other task**: task 1 of" in texts(app) and not app.error
    swaps = {"task_of": "0,1", "support": "0.1,16.17", "query": "2.3,18.19", "swap": "4.0"}
    app = open_page("pages/edit_task.py", **swaps)
    assert any("now correct" in markdown.value for markdown in app.markdown)
    app = open_page("pages/image_map.py", testbed="brought", image="20")
    assert "queries correctly (" in texts(app) and not app.error and not app.warning
    app = open_page("pages/image_map.py", colour="run", image="20")
    assert "Colour: how often each image is classified correctly" in texts(app)
    assert not app.error and not app.warning


def test_add_images(tmp_path: Path) -> None:
    rows = "\n".join('"' + name.replace('"', '""') + f'",{i}.png' for i, name in enumerate(NAMES))
    (tmp_path / "list.csv").write_text(f"class,path\n{rows}\n", encoding="utf-8")
    app = open_page("pages/add_images.py")
    look(app.text_input(key="path_0").set_value(str(tmp_path / "list.csv")).run())


def test_confusion() -> None:
    app = open_page("pages/confusion.py")
    look(app.multiselect(key="classes").set_value([LINK]).run())
    look(app.multiselect(key="classes").set_value([LINK, PICTURE]).run())
    look(app.segmented_control(key="show").set_value("Heat map").run())
    versus = app.selectbox(key="versus")
    assert len(versus.options) > 2
    titles = [title for title in versus.options if title.startswith("Errors of")]
    for title in (versus.options[1], *titles):
        look(app.selectbox(key="versus").select(title).run())
    assert escape_markdown(LINK) in texts(app)
