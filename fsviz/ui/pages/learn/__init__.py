"""The page of lessons: one cause of difficulty each, a figure that answers to one control, and a question.

A file of this folder that holds a LESSON is a lesson: nothing else lists it. Which one is open is in the link
(?lesson=2), and so is where its control stands; what was answered stays for the visit.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import streamlit as st

from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import lessons as study
from fsviz.studies.lessons import Question
from fsviz.ui.pages.learn.lesson import Lesson
from fsviz.ui.parts import cached, links, shell
from fsviz.ui.parts.shell import plain

_PIECES = {"lesson"}  # what lessons are built from
_SEEN, _ANSWERED = "_lessons_seen", "_lessons_answered"  # by place: positions of the control; which answer was given


def _found() -> dict[int, Lesson]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _PIECES]
    declared = [importlib.import_module(f"{__name__}.{name}").LESSON for name in modules]
    return {lesson.place: lesson for lesson in sorted(declared, key=lambda lesson: lesson.place)}


LESSONS: dict[int, Lesson] = _found()
WHICH = Setting("lesson", "Lesson", "Which lesson is open.", "int", 1, 1, len(LESSONS))


def show(dataset: Dataset) -> None:
    """The lessons are of the demo, whatever dataset is chosen: what they measure is known to be there."""
    if dataset.name != shell.DEFAULT_DATASET:
        st.caption(f"The lessons measure the demo; {plain(dataset.title)} stays chosen for the other pages.")
    _lesson(shell.load_dataset(shell.DEFAULT_DATASET))


@st.fragment
@shell.sentences()
def _lesson(dataset: Dataset) -> None:
    links.value_of(WHICH, "lesson")
    labels = {n: f"{n:d} {LESSONS[n].cause}{' ✓' if n in _answers() else ''}" for n in LESSONS}
    picked = st.segmented_control(
        "Lesson",
        list(LESSONS),
        key="lesson",
        format_func=labels.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    place = int(WHICH.check(picked))
    lesson = LESSONS[place]
    st.subheader(f"{place}. {lesson.title}", anchor=False)
    st.markdown(f"{lesson.told} :gray[After {lesson.paper}.]")
    found = _measured(dataset, place)
    stops, question = lesson.stops(found), lesson.ask(found)
    st.markdown(f"**Question: {plain(question.text)}**")
    at = _control(lesson, stops)
    seen: set[int] = st.session_state.setdefault(_SEEN, {}).setdefault(place, set())
    seen.add(at)
    answered = _answers().get(place)
    lesson.show(dataset, found, at, [i in seen or answered is not None for i in range(len(stops))])
    _answers_to(lesson, question, at, len(seen), len(stops))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("**Where to go on:**", width="content")
        lesson.go_on(dataset, found, at)
    _turn(place)
    shell.same_from_terminal(study.command(dataset, place, list(stops)[at]))


def _control(lesson: Lesson, stops: Any) -> int:
    """The one control of a lesson; returns its position."""
    names = list(stops)
    setting = Setting("control", lesson.control, lesson.do, "choice", names[0], choices=dict(stops))
    links.value_of(setting, "control", about=str(lesson.place))
    picked = st.select_slider(
        f"**{plain(lesson.control)}** · {plain(lesson.do)}",
        names,
        key="control",
        format_func=lambda name: plain(stops.get(name, name)),
    )
    return names.index(str(picked))


def _answers_to(lesson: Lesson, question: Question, at: int, n_seen: int, n_stops: int) -> None:
    with st.container(border=True):
        given = _answers().get(lesson.place)
        extra = range(n_stops, len(question.options))  # beside the positions, where the control is the answer
        which = [at, *extra] if lesson.by_position and given is None else range(len(question.options))
        if given is not None and lesson.by_position:
            which = [given]
        for column, option in zip(shell.columns_if_wide("answers", len(which)), which, strict=True):
            mark = "" if given is None else " ✓" if option in question.fits else " ✗" if option == given else ""
            column.button(
                ("My answer: " if lesson.by_position and option < n_stops else "")
                + plain(question.options[option])
                + mark,
                key=f"answer_{lesson.place}_{option}",
                type="primary" if given == option else "secondary",
                disabled=given is not None,
                on_click=_answer,
                args=[lesson.place, option],
                width="stretch",
            )
        if given is None:
            st.caption(
                f"{n_seen:,} of {n_stops:,} positions seen. Move the control before you answer: which answer is right "
                "follows from what is measured."
            )
            return
        if given == question.best:
            st.success(f"**Right.** {plain(question.why)}", icon="✅")
        elif given in question.fits:
            st.success(
                f"**That fits too:** the numbers do not tell it from “{plain(question.options[question.best])}”. "
                f"{plain(question.why)}",
                icon="✅",
            )
        else:
            st.warning(
                f"**Not what is measured here**, which is “{plain(question.options[question.best])}”. "
                f"{plain(question.why)}",
                icon="🔎",
            )
        st.button("Answer again", icon="↩️", on_click=_forget, args=[lesson.place])


def _turn(place: int) -> None:
    """Previous and next lesson, and how many were answered."""
    left, middle, right = st.columns([1, 2, 1], vertical_alignment="center")
    left.button("Previous", icon="⬅️", disabled=place == 1, on_click=_go, args=[place - 1], width="stretch")
    middle.progress(len(_answers()) / len(LESSONS), f"{len(_answers())} of {len(LESSONS)} lessons answered")
    right.button(
        "Next",
        icon="➡️",
        type="primary" if place in _answers() else "secondary",
        disabled=place == len(LESSONS),
        on_click=_go,
        args=[place + 1],
        width="stretch",
    )


def _answers() -> dict[int, int]:
    return st.session_state.setdefault(_ANSWERED, {})


def _answer(place: int, option: int) -> None:
    _answers()[place] = option


def _forget(place: int) -> None:
    _answers().pop(place, None)


def _go(place: int) -> None:
    st.session_state["lesson"] = place


@cached.remember("Measuring what this lesson shows", 16)
def _measured(dataset: Dataset, place: int) -> Any:
    return LESSONS[place].measure(dataset)
