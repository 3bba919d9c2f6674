"""The page Learn: lessons on one cause of difficulty each, with a figure, one control and one question.

A file of this folder that holds a LESSON is a lesson: nothing else lists it. The link holds the open lesson
(?lesson=2), the position of its control and the progress, so that a reload keeps them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import Question
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.ui.pages.learn.lesson import Lesson
from fsviz.ui.parts import caching, links, shell
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

_SHARED = {"lesson"}  # modules that are no lesson
PROGRESS = "progress"  # in the link: lesson.positions.answer~lesson.positions, such as 1.0-3-5.2~2.0-4
_PROGRESS, _LINKED = "_lesson_progress", "_lesson_progress_in_link"  # by lesson, and as last written to the link
_PART = re.compile(r"(\d{1,3})\.(\d{1,3}(?:-\d{1,3})*)(?:\.(\d{1,3}))?")


def _declared_lessons() -> dict[int, Lesson]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _SHARED]
    lessons = [importlib.import_module(f"{__name__}.{name}").LESSON for name in modules]
    return {lesson.order: lesson for lesson in sorted(lessons, key=lambda lesson: lesson.order)}


LESSONS: dict[int, Lesson] = _declared_lessons()
WHICH = Setting("lesson", "Lesson", "Lesson to open.", "int", 1, 1, len(LESSONS))


@dataclass
class Progress:
    """Visited positions of the control of a lesson, and the answer."""

    visited: set[int] = field(default_factory=set)
    answer: int | None = None

    @property
    def has_moved(self) -> bool:
        return len(self.visited) > 1


def show(dataset: Dataset) -> None:
    """Lessons on the demo, whatever the dataset: it has everything that they measure."""
    if dataset.name != shell.DEFAULT_DATASET:
        st.caption("Lessons use the demo.")
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
        "hard_support",
        "clustering",
        "correlation",
    ),
    keywords=("lesson", "tutorial", "course"),
    show=show,
)


@st.fragment
@shell.errors_on_page()
def _lesson(dataset: Dataset) -> None:
    requested = links.requested_for(PROGRESS)
    if _PROGRESS not in st.session_state:  # a new tab, or a reloaded one
        st.session_state[_PROGRESS] = _parse(requested or "") or {}
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
        number = int(WHICH.check(picked))
        lesson, progress = LESSONS[number], _progress(number)
        left, right = shell.responsive_columns("lesson", [2, 3], gap="large")
        with left:
            st.subheader(f"{number}. {lesson.title}", anchor=False, help=f"Paper: {lesson.paper}.")
            st.markdown(lesson.text)
        measured = caching.cached_call(LESSONS[number].measure, dataset, words="Measuring the lesson", keep=16)
        positions, question = lesson.positions(measured), lesson.ask(measured)
        with left:
            st.markdown(f"**Question:** {escape(question.text)}")
            at = _control(lesson, positions)
        progress.visited = {i for i in {*progress.visited, at} if i < len(positions)}
        if progress.answer is not None and progress.answer >= len(question.options):
            progress.answer = None
        _write_link(requested)
    visited = [i in progress.visited or progress.answer is not None for i in range(len(positions))]
    with right:
        lesson.show(dataset, measured, at, visited)
    with left:
        _answers(lesson, question, at, progress, len(positions))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Next steps:**", width="content")
            lesson.next_steps(dataset, measured, at)
        _previous_and_next(number)
        shell.command_popover(study.command(dataset, number, list(positions)[at]))


def _control(lesson: Lesson, positions: Mapping[str, str]) -> int:
    """The control of a lesson; returns its position."""
    names = list(positions)
    setting = Setting("control", lesson.control, lesson.hint, "choice", names[0], choices=dict(positions))
    links.value_of(setting, "control", about=str(lesson.order))
    picked = st.select_slider(
        escape(f"{lesson.control}: {lesson.hint[0].lower()}{lesson.hint[1:]}"),
        names,
        key="control",
        format_func=lambda name: escape(positions.get(name, name)),
    )
    return names.index(str(picked))


def _answers(lesson: Lesson, question: Question, at: int, progress: Progress, n_positions: int) -> None:
    """Buttons to answer with; after the answer the takeaway."""
    answer = progress.answer
    options: Sequence[int] = range(len(question.options))
    if lesson.by_position:  # the control is the answer; further options are next to it
        options = [at, *range(n_positions, len(question.options))] if answer is None else [answer]
    with st.container(border=True):
        for option in options:
            prefix = "Submit: " if lesson.by_position and answer is None and option < n_positions else ""
            st.button(
                f"{prefix}{escape(question.options[option])}{_mark(question, option, answer)}",
                key=f"answer_{lesson.order}_{option}",
                type="primary" if answer == option else "secondary",
                disabled=answer is not None or not progress.has_moved,
                on_click=_answer,
                args=[lesson.order, option],
                width="stretch",
            )
        if answer is None:
            tried = f"{len(progress.visited):,} of {n_positions:,} positions tried."
            st.caption(tried if progress.has_moved else f"{tried} Try more before you answer.")
            return
        _takeaway(question, answer)
        st.button("Try again", icon="↩️", on_click=_clear_answer, args=[lesson.order])


def _mark(question: Question, option: int, answer: int | None) -> str:
    """Tick or cross of an option once the question is answered."""
    if answer is None:
        return ""
    is_correct = option == question.correct or (option == answer and option in question.tied)
    return " ✓" if is_correct else " ✗" if option == answer else ""


def _takeaway(question: Question, answer: int) -> None:
    """Whether the answer is correct, and what the numbers mean."""
    best, takeaway = escape(question.options[question.correct]), escape(question.takeaway)
    if answer == question.correct:
        st.success(f"**Correct.** {takeaway}", icon="✅")
    elif answer in question.tied:
        st.success(f"**Also correct:** not significantly different from “{best}”. {takeaway}", icon="✅")
    else:
        st.warning(f"**Not quite: “{best}”.** {takeaway}", icon="🔎")


def _previous_and_next(number: int) -> None:
    """Buttons to the previous and the next lesson, and the number of answered ones."""
    n_answered = sum(map(_is_answered, LESSONS))
    st.progress(n_answered / len(LESSONS), f"{n_answered} of {len(LESSONS)} lessons answered")
    row = st.container(horizontal=True)
    row.button("Previous", icon="⬅️", disabled=number == 1, on_click=_open, args=[number - 1], width="stretch")
    row.button(
        "Next",
        icon="➡️",
        type="primary" if _is_answered(number) else "secondary",
        disabled=number == len(LESSONS),
        on_click=_open,
        args=[number + 1],
        width="stretch",
    )


def _progress(number: int) -> Progress:
    return st.session_state[_PROGRESS].setdefault(number, Progress())


def _is_answered(number: int) -> bool:
    return _progress(number).answer is not None


def _answer(number: int, option: int) -> None:
    _progress(number).answer = option


def _clear_answer(number: int) -> None:
    _progress(number).answer = None


def _write_link(requested: str | None) -> None:
    """Writes the progress to the link once it has changed on this page.

    A page that is only opened keeps its link, so that the browser's back button leaves it at once.
    """
    text = _format(st.session_state[_PROGRESS])
    if requested is None and text != st.session_state.get(_LINKED):
        links.keep(PROGRESS, text or None)
    else:
        current = st.query_params.get(PROGRESS)
        links.keep(PROGRESS, current if current and _parse(current) else None)
    st.session_state[_LINKED] = text


def _format(lessons: Mapping[int, Progress]) -> str:
    """Progress as in the link; "" while no control was moved and nothing was answered."""
    parts = [
        f"{number}.{'-'.join(map(str, sorted(progress.visited)))}"
        + ("" if progress.answer is None else f".{progress.answer}")
        for number, progress in sorted(lessons.items())
        if progress.has_moved or progress.answer is not None
    ]
    return "~".join(parts)


def _parse(text: str) -> dict[int, Progress] | None:
    """Progress of a link; None if it is invalid."""
    lessons = {}
    for part in text.split("~"):
        match = _PART.fullmatch(part)
        if match is None or int(match[1]) not in LESSONS:
            return None
        visited = set(map(int, match[2].split("-")))
        lessons[int(match[1])] = Progress(visited, None if match[3] is None else int(match[3]))
    return lessons


def _open(number: int) -> None:
    st.session_state["lesson"] = number
