"""The page Learn: every lesson on the demo, its answers, and what its link keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.ui.pages import learn
from fsviz.ui.parts import shell
from tests.ui.opening import open_link

PLACES = list(learn.LESSONS)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def open_lesson(place: int, **query: str) -> AppTest:
    return open_link("16_Learn", "demo", lesson=str(place), **query)


def measured(place: int):
    """What the page measured: it is kept, so nothing is measured twice."""
    return learn._measured(shell.load_dataset("demo"), place)


def answer(app: AppTest, place: int, option: int, stops: list[str]) -> AppTest:
    """Gives an answer, by moving the control to it where it is a position."""
    if learn.LESSONS[place].by_position and option < len(stops):
        app.select_slider(key="control").set_value(stops[option]).run()
    return app.button(key=f"answer_{place}_{option}").click().run()


def known_points(app: AppTest) -> int:
    """Positions whose accuracy the chart shows."""
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    return len(spec["data"][0]["x"])


def test_a_file_of_the_folder_is_a_lesson() -> None:
    files = {p.stem for p in Path(learn.__file__).parent.glob("*.py")} - {"__init__", "lesson"}
    assert len(files) == len(learn.LESSONS) and list(range(1, len(files) + 1)) == PLACES


@pytest.mark.parametrize("place", PLACES)
def test_a_lesson_tells_right_from_wrong_by_what_it_measured(place: int) -> None:
    app = open_lesson(place)
    lesson, found = learn.LESSONS[place], measured(place)
    stops, question = list(lesson.stops(found)), lesson.ask(found)
    assert lesson.paper in app.markdown[0].value and question.text.split(".")[0][:30] in app.markdown[1].value
    wrong = next(i for i in range(len(question.options)) if i not in question.fits)
    answer(app, place, wrong, stops)
    assert "Not what is measured here" in app.warning[0].value and not app.success
    assert shell.plain(question.options[question.best]) in app.warning[0].value
    next(button for button in app.button if button.label == "Answer again").click().run()
    assert not app.warning and not app.success
    answer(app, place, question.best, stops)
    assert app.success[0].value == f"**Right.** {shell.plain(question.why)}" and not app.warning
    assert [link for link in app.main.get("page_link") if "dataset=demo" in link.proto.query_string]


def test_the_figure_follows_the_control_and_the_link_keeps_both() -> None:
    app = open_lesson(2)
    assert known_points(app) == 1 and app.query_params == {"dataset": "demo", "lesson": "2"}
    app.select_slider(key="control").set_value("swapped").run()
    assert known_points(app) == 2 and app.query_params["control"] == "swapped"
    app = open_lesson(2, control="swapped")
    assert app.select_slider(key="control").value == "swapped" and known_points(app) == 1


def test_answers_stay_while_one_moves_on() -> None:
    app = open_lesson(1)
    app.select_slider(key="control").set_value("1.5").run()
    app.button(key="answer_1_0").click().run()
    assert known_points(app) == len(measured(1))  # the answer shows what was not tried
    next(button for button in app.button if button.label == "Next").click().run()
    assert app.query_params["lesson"] == "2" and "control" not in app.query_params and not app.warning
    next(button for button in app.button if button.label == "Previous").click().run()
    assert "lesson" not in app.query_params and app.warning and app.session_state["lesson"] == 1


def test_the_first_lesson_shows_the_tasks_of_its_sampler() -> None:
    closer = [stop.facts["coarsity"] for stop in measured(1)]
    assert closer == sorted(closer, reverse=True) and closer[0] > 1.5 * closer[-1]


@pytest.mark.parametrize("place", [2, 4])
def test_positions_share_their_queries(place: int) -> None:
    first, *others = measured(place)
    assert all((stop.tasks.query == first.tasks.query).all() for stop in others)
    assert any((stop.tasks.support != first.tasks.support).any() for stop in others)


def test_recorded_networks_stand_beside_the_splits_they_were_trained_on() -> None:
    trained = measured(5)
    assert [one.split.reached for one in trained.found] == pytest.approx(trained.points["x"].tolist(), abs=1e-6)


def test_a_link_that_asks_for_no_lesson_and_a_class_that_looks_on() -> None:
    app = open_lesson(99, control="nowhere", classroom="true")
    assert app.session_state["lesson"] == 1 and "lesson" not in app.query_params and app.toast
    assert app.sidebar.toggle(key="classroom_switch").value


def test_lessons_are_of_the_demo_whatever_is_chosen() -> None:
    app = open_link("16_Learn", "dtd")
    assert any("The lessons measure the demo" in caption.value for caption in app.caption)
    assert app.select_slider(key="control").options[0] == "α = 0"
