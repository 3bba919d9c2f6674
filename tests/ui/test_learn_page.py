"""The page Learn: every lesson on the demo, its answers, and its link."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import sharing
from fsviz.ui.pages import learn
from fsviz.ui.parts import access, shell, tally
from tests.ui.pages import link_of, open_link

PLACES = list(learn.LESSONS)
ASKED = [place for place in PLACES if place != 5]  # the recorded networks of the demo give no clear answer


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def open_lesson(place: int, **query: str) -> AppTest:
    return open_link("learn", "demo", lesson=str(place), **query)


def measured(place: int):
    """The measurements of a lesson."""
    return learn.LESSONS[place].lesson.measure(shell.load_dataset("demo"))


def move(app: AppTest, to: str) -> AppTest:
    return app.select_slider(key="control").set_value(to).run()


def answer(app: AppTest, place: int, option: int, stops: list[str]) -> AppTest:
    """Gives an answer once the control was moved: to it where it is a position."""
    move(app, stops[-1])
    if learn.LESSONS[place].lesson.by_position and option < len(stops):
        move(app, stops[option])
    return app.button(key=f"answer_{place}_{option}").click().run()


def answers(app: AppTest) -> list:
    """The buttons that can be answered with."""
    return [button for button in app.button if str(button.key).startswith("answer_")]


def known_points(app: AppTest) -> int:
    """Positions whose accuracy the chart shows."""
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    return len(spec["data"][0]["x"])


def test_a_file_of_the_folder_is_a_lesson() -> None:
    files = {p.stem for p in Path(learn.__file__).parent.glob("*.py")} - {"__init__", "lesson"}
    assert len(files) == len(learn.LESSONS) and list(range(1, len(files) + 1)) == PLACES


@pytest.mark.parametrize("place", ASKED)
def test_a_lesson_tells_correct_from_incorrect_by_its_measurements(place: int) -> None:
    app = open_lesson(place)
    lesson, measurements = learn.LESSONS[place].lesson, measured(place)
    stops, question = list(lesson.positions(measurements)), lesson.ask(measurements)
    assert lesson.paper in app.subheader[0].help and lesson.text == app.markdown[0].value
    assert shell.escape(question.text) in app.markdown[1].value
    accepted = {question.correct, *question.tied}
    wrong = next(i for i in range(len(question.options)) if i not in accepted)
    answer(app, place, wrong, stops)
    assert app.warning[0].value.startswith("**Not quite: ") and not app.success
    assert shell.escape(question.options[question.correct]) in app.warning[0].value
    next(button for button in app.button if button.label == "Try again").click().run()
    assert not app.warning and not app.success
    answer(app, place, question.correct, stops)
    assert app.success[0].value == f"**Correct.** {shell.escape(question.takeaway)}" and not app.warning
    assert [link for link in app.main.get("page_link") if "dataset=demo" in link.proto.query_string]


@pytest.mark.parametrize("place", ASKED)
def test_one_answer_is_correct_at_every_position_of_the_control(place: int) -> None:
    lesson, measurements = learn.LESSONS[place].lesson, measured(place)
    stops, question = list(lesson.positions(measurements)), lesson.ask(measurements)
    assert len(set(question.options)) == len(question.options) and 0 <= question.correct < len(question.options)
    app = move(open_lesson(place), stops[-1])
    for at, name in enumerate(stops):
        move(app, name)
        offered = [int(str(button.key).rpartition("_")[2]) for button in answers(app)]
        assert offered == ([at] if lesson.by_position else list(range(len(question.options))))
        app.button(key=f"answer_{place}_{offered[0]}").click().run()
        marked = [button.label for button in answers(app) if button.label.endswith("✓")]
        is_correct = offered[0] in {question.correct, *question.tied}
        assert len(marked) == (1 if is_correct or not lesson.by_position else 0)
        assert (len(app.success), len(app.warning)) == ((1, 0) if is_correct else (0, 1))
        next(button for button in app.button if button.label == "Try again").click().run()


def test_the_numbers_that_a_page_shows_tell_the_right_position_from_the_others() -> None:
    pairs, together = measured(3), measured(6)
    means = [f"{position.mean[0]:.1f}" for position in pairs.positions]
    assert means.count(min(means, key=float)) == 1
    correlations = [f"{abs(how.value):.2f}" for how in together.correlations.values()]
    correct = learn.LESSONS[6].lesson.ask(together).correct
    assert correct < len(correlations) and correlations.count(correlations[correct]) == 1


@pytest.mark.parametrize("place", ASKED)
def test_a_lesson_is_answered_only_after_its_control_was_moved(place: int) -> None:
    stops = list(learn.LESSONS[place].lesson.positions(measured(place)))
    app = open_lesson(place, control=stops[1])  # where a link put it, nobody moved it
    assert answers(app) and all(button.disabled for button in answers(app))
    assert any("Try more before you answer" in caption.value for caption in app.caption)
    move(app, stops[0])
    assert answers(app) and not any(button.disabled for button in answers(app))
    assert not any("Try more before you answer" in caption.value for caption in app.caption)


def test_a_reload_keeps_what_was_seen_and_answered() -> None:
    app = move(move(open_lesson(1), "1.5"), "0.2")
    app.button(key="answer_1_0").click().run()
    next(button for button in app.button if button.label == "Next").click().run()
    move(app, "swapped")
    assert link_of(app) == {"lesson": "2", "control": "swapped", "progress": "1.0-2-5.0~2.0-4"}
    again = open_lesson(2, control="swapped", progress="1.0-2-5.0~2.0-4")  # the link in a new session
    assert known_points(again) == 2 and not any(button.disabled for button in answers(again))
    assert "1 of 6 lessons answered" in again.get("progress")[0].proto.text and not again.toast
    next(button for button in again.button if button.label == "Previous").click().run()
    assert again.warning and answers(again)[0].label.endswith("✗")


def test_invalid_progress_is_reported_and_ignored() -> None:
    for text in ("9.0-1", "1.x", "0", "1.0-1~"):
        app = open_lesson(1, progress=text)
        assert "progress" not in app.query_params and app.toast, text
        assert known_points(app) == 1 and all(button.disabled for button in answers(app))
    app = open_lesson(1, progress="1.0-99.77")  # positions and answers that this lesson does not have
    assert known_points(app) == 1 and all(button.disabled for button in answers(app))


def test_a_page_that_is_only_opened_keeps_its_link() -> None:
    """Each change of the link would be one more step for the browser's back button."""
    app = open_lesson(1, control="0")
    assert link_of(app) == {"lesson": "1", "control": "0"}
    move(app, "1.5")
    assert link_of(app) == {"lesson": "1", "control": "1.5", "progress": "1.0-5"}
    app.switch_page("pages/sample_tasks.py").run()
    app.query_params.clear()
    app.switch_page("pages/learn.py").run()
    assert "progress" not in link_of(app) and known_points(app) == 2  # what was seen stays for the visit
    move(app, "0.1")
    assert link_of(app) == {"control": "0.1", "progress": "1.0-1-5"}


@pytest.mark.parametrize("place", PLACES)
def test_the_links_to_go_on_are_left_as_they_are_where_they_lead(place: int) -> None:
    app = open_lesson(place)
    stops = list(learn.LESSONS[place].lesson.positions(measured(place)))
    for name in (stops[-1], stops[0]):
        move(app, name)
        assert app.main.get("page_link")
        for link in app.main.get("page_link"):
            settings = parse_qs(link.proto.query_string, keep_blank_values=True)
            query = {k: v for k, v in settings.items() if k != "dataset"}
            target = open_link(link.proto.page, settings["dataset"][0], **query)
            assert {k: v if isinstance(v, list) else [v] for k, v in target.query_params.items()} == settings


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
    first, *rest = measured(place)
    assert all((stop.tasks.query == first.tasks.query).all() for stop in rest)
    assert any((stop.tasks.support != first.tasks.support).any() for stop in rest)


def test_recorded_networks_match_the_splits_they_were_trained_on() -> None:
    trained = measured(5)  # the search ends nearer to its minimum than when the networks were trained
    assert [split.split.reached for split in trained.splits] == pytest.approx(trained.points["x"].tolist(), abs=2e-4)


def test_a_link_that_asks_for_no_lesson_and_a_class_that_looks_on() -> None:
    app = open_lesson(99, control="nowhere", classroom="true")
    assert app.session_state["lesson"] == 1 and "lesson" not in app.query_params and app.toast
    assert app.sidebar.toggle(key="classroom_switch").value


def test_lessons_are_of_the_demo_where_a_dataset_has_nothing_for_them() -> None:
    app = open_link("learn", "dtd")
    assert any("Lessons use the demo" in caption.value for caption in app.caption)
    assert app.select_slider(key="control").options[0] == "α = 0"


def test_lessons_on_photographs_dim_those_without_data_and_say_why() -> None:
    app = open_link("learn", "fruit")
    options = app.button_group(key="lesson").options
    labels = {label.removeprefix(":gray[").removesuffix("]"): label for label in options}
    dimmed = {label for label, drawn_as in labels.items() if drawn_as.startswith(":gray[")}
    assert dimmed == {"2 Context", "5 Training classes"}
    assert any(
        "Context needs contexts; Training classes needs recorded networks" in caption.value for caption in app.caption
    )
    app = open_link("learn", "fruit", lesson="2")
    assert "needs contexts" in app.info[0].value and not answers(app) and not app.get("plotly_chart")
    assert any("dataset=demo" in link.proto.query_string for link in app.main.get("page_link"))


def test_an_unclear_answer_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    view = learn.LESSONS[4]
    unclear = replace(view.lesson, ask=lambda values: replace(view.lesson.ask(values), is_clear=False))
    monkeypatch.setitem(learn.LESSONS, 4, replace(view, lesson=unclear))
    app = open_lesson(4)
    assert "gives no clear answer" in app.info[0].value and not answers(app)
    assert not any("Question:" in text.value for text in app.markdown) and app.get("plotly_chart")


def test_recorded_networks_that_show_no_change_are_no_question() -> None:
    question = learn.LESSONS[5].lesson.ask(measured(5))
    app = open_lesson(5)
    assert "The change is not significant" in question.takeaway and not question.is_clear
    assert shell.escape(question.takeaway) in app.info[0].value and not answers(app)
    assert "0 of 5 lessons answered" in app.get("progress")[0].proto.text


def test_datasets_have_a_progress_each() -> None:
    app = open_lesson(1)
    move(app, "1.5")
    app.button(key="answer_1_0").click().run()
    app.selectbox(key="dataset_picker").set_value("fruit").run()
    assert not app.warning and not app.success and "progress" not in app.query_params
    app.selectbox(key="dataset_picker").set_value("demo").run()
    assert app.warning and "progress" in app.query_params


# --- the class ------------------------------------------------------------------------------------------------------


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> tally.Tally:
    memory = tally.Tally()
    monkeypatch.setattr(tally, "_tally", memory)
    return memory


def class_line(app: AppTest) -> list[str]:
    return [text.value for text in app.markdown if "The class:" in text.value]


def test_somebody_alone_sees_no_class(guesses: tally.Tally) -> None:
    app = move(open_lesson(4), "easy")
    app.button(key="answer_4_0").click().run()
    assert class_line(app) == []


def test_a_visitor_sees_the_class_after_the_own_answer(guesses: tally.Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sharing.Sharing(look=True).to_environment().items():
        monkeypatch.setenv(name, value)
    for visitor, option in enumerate((0, 0, 1)):
        monkeypatch.setattr(access, "session", lambda name=f"tab {visitor}": name)
        app = move(open_lesson(4, classroom="true"), "easy")
        assert class_line(app) == []
        app.button(key=f"answer_4_{option}").click().run()
    assert class_line(app) == ["**The class:** 3 guesses"]
    assert not any(button.label == "Reset" for button in app.button)
    chart = next(c for c in app.get("plotly_chart") if c.proto.id.endswith(tally.KEY) or "✓" in c.proto.spec)
    assert json.loads(chart.proto.spec)["data"][0]["text"] == ["2", "1", ""]
    next(button for button in app.button if button.label == "Try again").click().run()
    app.button(key="answer_4_2").click().run()
    assert class_line(app) == ["**The class:** 3 guesses"]  # a second thought replaces the first


def test_a_teacher_sees_the_class_first_and_may_reset_it(guesses: tally.Tally) -> None:
    app = move(open_lesson(4), "easy")
    app.button(key="answer_4_1").click().run()
    teacher = open_lesson(4, classroom="true")
    assert class_line(teacher) == ["**The class:** 1 guess"]
    assert not any("✓" in chart.proto.spec for chart in teacher.get("plotly_chart"))
    teacher.button(key=f"{tally.KEY}_reset").click().run()
    assert class_line(teacher) == ["**The class:** 0 guesses"]


def test_worksheets_are_offered_for_export() -> None:
    app = open_lesson(4)
    items = {item.title: item for item in app.session_state["_shown_here"].items.values()}
    assert {"Worksheet: Support", "Worksheet: all lessons"} <= set(items)
    assert "How much depends on the support images?" in items["Worksheet: Support"].content()
