"""Every page with hostile names in every place that takes one: what is sent to the browser shows them as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

from fsviz.text import drawn, plain
from fsviz.ui.parts import later
from tests.hostile import LINK, NAMES, PICTURE, make_hostile, make_hostile_run

ROOT = Path(__file__).resolve().parent.parent.parent
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
MARKS = [name for name in NAMES if plain(name) != name]


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home / "ws"))
        make_hostile_run(make_hostile(home / "images"))
        yield


def open_page(page: str, **query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.session_state[later.STANDS] = True  # its figures are there
    if page:
        app.switch_page(f"pages/{page}.py")
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
                assert drawn(name) == name or json.dumps(name)[1:-1] not in text, (name, text)
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
        for one in values:
            if isinstance(one, str):
                yield field.name, one
            elif isinstance(one, Message):
                yield from strings(one)


def texts(app: AppTest) -> str:
    return "\n".join(text for kind, field, text in sent(app) if not {kind, field} & NO_MARKDOWN)


def test_overview() -> None:
    app = open_page("")
    assert plain(PICTURE) in texts(app) and plain(LINK) in texts(app)
    assert f"Classes in split {plain('test')}" in [metric.label for metric in app.metric]


def test_gallery() -> None:
    app = open_page("1_Gallery")
    for name in ("by", "contexts", "classes"):
        box = app.multiselect(key=name)
        look(box.set_value(box.options[:2]).run())
        look(app.multiselect(key=name).set_value([]).run())
    look(app.multiselect(key="by").set_value(app.multiselect(key="by").options).run())
    assert plain(NAMES[3]) in [m.label for m in app.multiselect] + [s.label for s in app.slider]
    for order in app.selectbox(key="order").options:
        look(app.selectbox(key="order").set_value(order).run())
    look(app.segmented_control(key="view").set_value("Classes").run())
    assert plain(PICTURE) in texts(app)


def test_taxonomy() -> None:
    app = open_page("2_Taxonomy")
    box = app.multiselect(key="classes")
    look(box.set_value(box.options[:6]).run())
    assert sum(plain(name) in texts(app) for name in NAMES) >= 4


def test_tasks() -> None:
    app = open_page("3_Tasks")
    app.text_input(key="testbed_name").set_value(PICTURE).run()
    look(app)
    look(app.button(key="save_testbed").click().run())
    assert plain(PICTURE) in app.error[0].value
    for split in (LINK, PICTURE):
        look(app.selectbox(key="split").set_value(split).run())


def test_evaluate() -> None:
    app = open_page("4_Evaluate")
    look(app.multiselect(key="backbones").set_value([LINK, PICTURE]).run())
    assert plain(PICTURE) in texts(app)
    look(app.selectbox(key="tasks_from").set_value("saved").run())
    assert app.metric[0].delta and plain(LINK) in texts(app)


def test_runs() -> None:
    app = open_page("5_Runs")
    shown = texts(app)
    assert plain(LINK) in shown and plain(PICTURE) in shown
    assert f"Testbed {plain(PICTURE)}" in shown
    for name in app.selectbox(key="mistakes_of").options:
        look(app.selectbox(key="mistakes_of").set_value(name).run())


def test_hard_tasks() -> None:
    app = open_page("6_Hard_tasks", n_tasks="50", n_shot="2", n_query="4")
    look(app.selectbox(key="sampler").set_value("uniform").run())
    for section in ("Tasks", "Attributes", "Closeness in meaning", "Step size", "Stress test"):
        look(app.segmented_control(key="show").set_value(section).run())
        assert plain(LINK) in texts(app) or plain(PICTURE) in texts(app), section


def test_prediction() -> None:
    app = open_page("8_Prediction", n_tasks="50", n_way="2", n_shot="2", n_query="4")
    for section in ("Hard or easy", "Spread by cause", "What to label next", "Shots, ways, queries", "Task"):
        look(app.segmented_control(key="show").set_value(section).run())
    assert plain(LINK) in texts(app) or plain(PICTURE) in texts(app)


def test_add_images(tmp_path: Path) -> None:
    look(open_page("11_Add_images"))
    look(open_page("11_Add_images", do="Extract features"))
    look(open_page("11_Add_images", do="Import features"))
    rows = "\n".join('"' + name.replace('"', '""') + f'",{i}.png' for i, name in enumerate(NAMES))
    (tmp_path / "list.csv").write_text(f"class,path\n{rows}\n", encoding="utf-8")
    app = open_page("11_Add_images")
    look(app.text_input(key="path_0").set_value(str(tmp_path / "list.csv")).run())


def test_confusion() -> None:
    app = open_page("7_Confusion")
    for section in ("Images", "Heat map", "Compare", "Base classes"):
        look(app.segmented_control(key="show").set_value(section).run())
        assert any(plain(name) in texts(app) for name in NAMES[:8]), section
    look(app.multiselect(key="classes").set_value([LINK]).run())
    look(app.multiselect(key="classes").set_value([LINK, PICTURE]).run())
    look(app.segmented_control(key="show").set_value("Compare").run())
    for kind in ("confusion", "run"):
        look(app.selectbox(key="versus").set_value(kind).run())
    assert plain(LINK) in texts(app)
