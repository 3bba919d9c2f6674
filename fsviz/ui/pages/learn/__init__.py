"""The page of lessons: one cause of difficulty each, a figure that answers to one control, and a question.

A file of this folder that holds a LESSON is a lesson: nothing else lists it. Which one is open is in the link
(?lesson=2), and so are where its control stands and what was seen and answered, so that a reload keeps it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import Question
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.ui.pages.learn.lesson import Lesson
from fsviz.ui.parts import caching, links, shell
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

_PIECES = {"lesson"}  # what lessons are built from
PROGRESS = "progress"  # in the link: lesson.positions.answer~lesson.positions, such as 1.0-3-5.2~2.0-4
_DONE, _SAID = "_lessons_done", "_lessons_said"  # progress by lesson, and as it was last said in the link
_PART = re.compile(r"(\d{1,3})\.(\d{1,3}(?:-\d{1,3})*)(?:\.(\d{1,3}))?")


def _found() -> dict[int, Lesson]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _PIECES]
    declared = [importlib.import_module(f"{__name__}.{name}").LESSON for name in modules]
    return {lesson.place: lesson for lesson in sorted(declared, key=lambda lesson: lesson.place)}


LESSONS: dict[int, Lesson] = _found()
WHICH = Setting("lesson", "Lesson", "Which lesson is open.", "int", 1, 1, len(LESSONS))


@dataclass
class Progress:
    """What was done in a lesson: the positions of its control that were seen, and the answer that was given."""

    seen: set[int] = field(default_factory=set)
    answer: int | None = None

    @property
    def has_moved(self) -> bool:
        return len(self.seen) > 1


def show(dataset: Dataset) -> None:
    """The lessons are of the demo, whatever dataset is chosen: what they measure is known to be there."""
    if dataset.name != shell.DEFAULT_DATASET:
        st.caption(f"The lessons measure the demo; {escape(dataset.title)} stays chosen for the other pages.")
    _lesson(shell.load_dataset(shell.DEFAULT_DATASET))


PAGE = Page(
    slug="learn",
    label="Learn",
    icon="🎓",
    group="",
    order=1,
    question="What makes a task hard?",
    lead="Six two-minute lessons: move one control, answer one question.",
    explains=(
        "accuracy",
        "protonet",
        "interval",
        "coarsity",
        "loss_of_context",
        "pair_confusion",
        "fastdiffsel",
        "clustering",
        "correlation",
    ),
    keywords=("lesson", "tutorial", "course"),
    show=show,
)


@st.fragment
@shell.errors_on_page()
def _lesson(dataset: Dataset) -> None:
    asked = links.asked_for(PROGRESS)
    if _DONE not in st.session_state:  # a new tab, or one that was reloaded
        st.session_state[_DONE] = _read(asked or "") or {}
    with links.one_step():
        links.value_of(WHICH, "lesson")
        labels = {n: f"{n:d} {LESSONS[n].cause}{' ✓' if _is_answered(n) else ''}" for n in LESSONS}
        picked = st.segmented_control(
            "Lesson",
            list(LESSONS),
            key="lesson",
            format_func=labels.__getitem__,
            required=True,
            label_visibility="collapsed",
        )
        place = int(WHICH.check(picked))
        lesson, done = LESSONS[place], _done(place)
        st.subheader(f"{place}. {lesson.title}", anchor=False)
        st.markdown(f"{lesson.told} :gray[After {lesson.paper}.]")
        found = _measured(dataset, place)
        stops, question = lesson.stops(found), lesson.ask(found)
        st.markdown(f"**Question: {escape(question.text)}**")
        at = _control(lesson, stops)
        done.seen = {i for i in {*done.seen, at} if i < len(stops)}
        if done.answer is not None and done.answer >= len(question.options):
            done.answer = None
        _say(asked)
    lesson.show(dataset, found, at, [i in done.seen or done.answer is not None for i in range(len(stops))])
    _answers_to(lesson, question, at, done, len(stops))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("**Where to go on:**", width="content")
        lesson.go_on(dataset, found, at)
    _turn(place)
    shell.command_popover(study.command(dataset, place, list(stops)[at]))


def _control(lesson: Lesson, stops: Any) -> int:
    """The one control of a lesson; returns its position."""
    names = list(stops)
    setting = Setting("control", lesson.control, lesson.do, "choice", names[0], choices=dict(stops))
    links.value_of(setting, "control", about=str(lesson.place))
    picked = st.select_slider(
        f"**{escape(lesson.control)}** · {escape(lesson.do)}",
        names,
        key="control",
        format_func=lambda name: escape(stops.get(name, name)),
    )
    return names.index(str(picked))


def _answers_to(lesson: Lesson, question: Question, at: int, done: Progress, n_stops: int) -> None:
    with st.container(border=True):
        given = done.answer
        extra = range(n_stops, len(question.options))  # beside the positions, where the control is the answer
        which = [at, *extra] if lesson.by_position and given is None else range(len(question.options))
        if given is not None and lesson.by_position:
            which = [given]
        for column, option in zip(shell.responsive_columns("answers", len(which)), which, strict=True):
            mark = "" if given is None else " ✓" if option == question.right else " ✗" if option == given else ""
            column.button(
                ("My answer: " if lesson.by_position and option < n_stops else "")
                + escape(question.options[option])
                + mark,
                key=f"answer_{lesson.place}_{option}",
                type="primary" if given == option else "secondary",
                disabled=given is not None or not done.has_moved,
                on_click=_answer,
                args=[lesson.place, option],
                width="stretch",
            )
        if given is None:
            st.caption(
                f"{len(done.seen):,} of {n_stops:,} positions seen. "
                + ("" if done.has_moved else "Move the control before you answer. ")
                + "Which answer is right follows from what is measured."
            )
            return
        if given == question.right:
            st.success(f"**Right.** {escape(question.why)}", icon="✅")
        else:
            st.warning(
                f"**Not what is measured here**, which is “{escape(question.options[question.right])}”. "
                f"{escape(question.why)}",
                icon="🔎",
            )
        st.button("Answer again", icon="↩️", on_click=_forget, args=[lesson.place])


def _turn(place: int) -> None:
    """Previous and next lesson, and how many were answered."""
    left, middle, right = st.columns([1, 2, 1], vertical_alignment="center")
    left.button("Previous", icon="⬅️", disabled=place == 1, on_click=_go, args=[place - 1], width="stretch")
    n_answered = sum(map(_is_answered, LESSONS))
    middle.progress(n_answered / len(LESSONS), f"{n_answered} of {len(LESSONS)} lessons answered")
    right.button(
        "Next",
        icon="➡️",
        type="primary" if _is_answered(place) else "secondary",
        disabled=place == len(LESSONS),
        on_click=_go,
        args=[place + 1],
        width="stretch",
    )


def _done(place: int) -> Progress:
    return st.session_state[_DONE].setdefault(place, Progress())


def _is_answered(place: int) -> bool:
    return _done(place).answer is not None


def _answer(place: int, option: int) -> None:
    _done(place).answer = option


def _forget(place: int) -> None:
    _done(place).answer = None


def _say(asked: str | None) -> None:
    """Puts the progress into the link once it has changed on this page.

    A page that is only opened keeps the link that it was opened by: the browser's back button leaves it at once.
    """
    text = _written(st.session_state[_DONE])
    if asked is None and text != st.session_state.get(_SAID):
        links.keep(PROGRESS, text or None)
    else:
        here = st.query_params.get(PROGRESS)
        links.keep(PROGRESS, here if here and _read(here) else None)
    st.session_state[_SAID] = text


def _written(done: dict[int, Progress]) -> str:
    """Progress as the link has it: "" while no control was moved and nothing was answered."""
    parts = [
        f"{place}.{'-'.join(map(str, sorted(one.seen)))}" + ("" if one.answer is None else f".{one.answer}")
        for place, one in sorted(done.items())
        if one.has_moved or one.answer is not None
    ]
    return "~".join(parts)


def _read(text: str) -> dict[int, Progress] | None:
    """Progress that a link tells; None where it cannot be that."""
    found = {}
    for part in text.split("~"):
        match = _PART.fullmatch(part)
        if match is None or int(match[1]) not in LESSONS:
            return None
        seen = set(map(int, match[2].split("-")))
        found[int(match[1])] = Progress(seen, None if match[3] is None else int(match[3]))
    return found


def _go(place: int) -> None:
    st.session_state["lesson"] = place


@caching.cache_data("Measuring what this lesson shows", 16)
def _measured(dataset: Dataset, place: int) -> Any:
    return LESSONS[place].measure(dataset)
