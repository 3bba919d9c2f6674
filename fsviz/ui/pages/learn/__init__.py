"""The page Learn: lessons on one cause of difficulty each, with a figure, one control and one question.

A file of this folder shows the lesson that the file of the same name in fsviz/analyses/lessons declares. The link holds
the open lesson (?lesson=2), the position of its control and the progress, so that a reload keeps them. Datasets have a
progress each.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import Lesson, Question
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.reports import worksheets
from fsviz.settings import Setting
from fsviz.ui.pages.learn.lesson import LessonView
from fsviz.ui.parts import caching, export, links, shell, tally
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

PROGRESS = "progress"  # in the link: lesson.positions.answer~lesson.positions, such as 1.0-3-5.2~2.0-4
_PROGRESS, _LINKED = "_lesson_progress", "_lesson_progress_in_link"  # by dataset and lesson; as last in the link
_PART = re.compile(r"(\d{1,3})\.(\d{1,3}(?:-\d{1,3})*)(?:\.(\d{1,3}))?")
PHOTOGRAPHS = "fruit"  # built-in, for lessons on real images

LESSONS: dict[int, LessonView] = {
    number: importlib.import_module(f"{__name__}.{lesson.measure.__module__.rpartition('.')[2]}").LESSON
    for number, lesson in study.LESSONS.items()
}
WHICH = Setting("lesson", "Lesson", "Lesson to open.", "int", 1, 1, len(LESSONS))


@dataclass
class Progress:
    """Visited positions of the control of a lesson, and the answer; is_asked: whether there is a question."""

    visited: set[int] = field(default_factory=set)
    answer: int | None = None
    is_asked: bool = True

    @property
    def has_moved(self) -> bool:
        return len(self.visited) > 1


def show(dataset: Dataset) -> None:
    """Lessons on the dataset; on the demo, which has everything, if the dataset can give none of them."""
    if not study.possible_lessons(dataset):
        reason = next(iter(study.missing_by_reason(dataset)))
        st.caption(f"Lessons use the demo: {escape(dataset.title)} cannot give any (the first {escape(reason)}).")
        dataset = shell.load_dataset(shell.DEFAULT_DATASET)
    _lesson(dataset)


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
    everywhere: dict[str, dict[int, Progress]] = st.session_state.setdefault(_PROGRESS, {})
    if dataset.name not in everywhere:  # a new tab, a reloaded one, or another dataset
        everywhere[dataset.name] = _parse(requested or "") or {}
    lessons = everywhere[dataset.name]
    with links.one_step():
        number = _pick(dataset, lessons)
        view, progress = LESSONS[number], lessons.setdefault(number, Progress())
        lesson = view.lesson
        left, right = shell.responsive_columns("lesson", [2, 3], gap="large")
        with left:
            st.subheader(f"{number}. {lesson.title}", anchor=False, help=f"Paper: {lesson.paper}.")
            st.markdown(lesson.text)
        measured, refusal = _measured(dataset, lesson)
        if measured is None:
            _write_link(requested, lessons)
        else:
            positions, question = lesson.positions(measured), lesson.ask(measured)
            with left:
                if question.is_clear:
                    st.markdown(f"**Question:** {escape(question.text)}")
                at = _control(dataset, lesson, positions)
            progress.visited = {i for i in {*progress.visited, at} if i < len(positions)}
            progress.is_asked = question.is_clear
            if progress.answer is not None and (progress.answer >= len(question.options) or not question.is_clear):
                progress.answer = None
            _write_link(requested, lessons)
    if measured is None:
        with left:
            _show_refusal(dataset, lesson, refusal)
            _previous_and_next(dataset, lessons, number)
        return
    visited = [i in progress.visited or progress.answer is not None for i in range(len(positions))]
    with right:
        view.show(dataset, measured, at, visited)
    with left:
        if question.is_clear:
            _answers(dataset, lesson, question, at, progress, len(positions))
        else:
            st.info(f"**{escape(dataset.title)} gives no clear answer.** {escape(question.takeaway)}", icon="⚖️")
            _to_other_data(dataset, lesson)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Next steps:**", width="content")
            view.next_steps(dataset, measured, at)
            if question.is_clear:
                _to_other_data(dataset, lesson)
        _previous_and_next(dataset, lessons, number)
        shell.command_popover(lesson.command(dataset, list(positions)[at]))
    _offer_worksheets(dataset, lesson)


def _pick(dataset: Dataset, lessons: Mapping[int, Progress]) -> int:
    """The picker of lessons; those that the dataset cannot give are grey, with the reasons below."""
    links.value_of(WHICH, "lesson")
    reasons = study.missing_by_reason(dataset)
    dimmed = {lesson.order for group in reasons.values() for lesson in group}
    labels = {}
    for n, view in LESSONS.items():
        label = f"{n:d} {view.lesson.cause}{' ✓' if _is_answered(lessons, n) else ''}"
        labels[n] = f":gray[{label}]" if n in dimmed else label
    picked = st.segmented_control(
        "Lesson",
        list(LESSONS),
        key="lesson",
        format_func=labels.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    if reasons:
        texts = [f"{', '.join(lesson.cause for lesson in group)} {reason}" for reason, group in reasons.items()]
        st.caption(f"Not on {escape(dataset.title)}: {escape('; '.join(texts))}.")
    return int(WHICH.check(picked))


def _measured(dataset: Dataset, lesson: Lesson) -> tuple[Any, str]:
    """The measurements of a lesson, or None and the reason why there are none."""
    if reason := lesson.missing(dataset):
        return None, f"This lesson {reason}. Choose another dataset or lesson."
    try:
        return caching.cached_call(lesson.measure, dataset, words="Measuring the lesson", keep=16), ""
    except FsvizError as error:
        return None, shell.with_setting_titles(error)


def _show_refusal(dataset: Dataset, lesson: Lesson, refusal: str) -> None:
    st.info(escape(refusal), icon="🧩")
    _to_other_data(dataset, lesson)


def _to_other_data(dataset: Dataset, lesson: Lesson) -> None:
    """A link to the same lesson on the drawn demo, or from there on photographs."""
    is_demo = dataset.name == shell.DEFAULT_DATASET
    target = shell.load_dataset(PHOTOGRAPHS if is_demo else shell.DEFAULT_DATASET)
    if not lesson.missing(target):
        label = f"This lesson on {'photographs' if is_demo else 'the demo'}"
        query = {**shell.link(target), **({} if lesson.order == 1 else {"lesson": str(lesson.order)})}
        shell.page_link("learn", label, query)


def _offer_worksheets(dataset: Dataset, lesson: Lesson) -> None:
    """Lists the worksheets of this lesson and of all lessons behind the button Export."""

    def measured(of: Lesson) -> Any:
        return caching.cached_call(of.measure, dataset, words="Measuring the lesson", keep=16)

    for title, numbers in ((f"Worksheet: {lesson.cause}", [lesson.order]), ("Worksheet: all lessons", [])):
        make = partial(worksheets.worksheet, dataset, numbers, measured)
        export.file(title, make, "worksheet_lesson" if numbers else "worksheet_all")
    export.command("worksheet", dataset.name, "--lesson", str(lesson.order))


def _control(dataset: Dataset, lesson: Lesson, positions: Mapping[str, str]) -> int:
    """The control of a lesson; returns its position."""
    names = list(positions)
    setting = Setting("control", lesson.control, lesson.hint, "choice", names[0], choices=dict(positions))
    links.value_of(setting, "control", about=f"{dataset.name} {lesson.order}")
    picked = st.select_slider(
        escape(f"{lesson.control}: {lesson.hint[0].lower()}{lesson.hint[1:]}"),
        names,
        key="control",
        format_func=lambda name: escape(positions.get(name, name)),
    )
    return names.index(str(picked))


def _answers(
    dataset: Dataset, lesson: Lesson, question: Question, at: int, progress: Progress, n_positions: int
) -> None:
    """Buttons to answer with; after the answer the takeaway and the guesses of the class."""
    answer = progress.answer
    topic = tally.topic(dataset, f"Lesson {lesson.order}: {question.text}", question.options)
    options: Sequence[int] = range(len(question.options))
    if lesson.by_position:  # the control is the answer
        options = [at] if answer is None else [answer]
    with st.container(border=True):
        for option in options:
            prefix = "Submit: " if lesson.by_position and answer is None else ""
            st.button(
                f"{prefix}{escape(question.options[option])}{_mark(question, option, answer)}",
                key=f"answer_{lesson.order}_{option}",
                type="primary" if answer == option else "secondary",
                disabled=answer is not None or not progress.has_moved,
                on_click=_answer,
                args=[progress, option, topic],
                width="stretch",
            )
        if answer is None:
            tried = f"{len(progress.visited):,} of {n_positions:,} positions tried."
            st.caption(tried if progress.has_moved else f"{tried} Try more before you answer.")
        else:
            _takeaway(question, answer)
        tally.show(topic, None if answer is None else question.correct)
        if answer is not None:
            st.button("Try again", icon="↩️", on_click=_clear_answer, args=[progress])


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


def _previous_and_next(dataset: Dataset, lessons: Mapping[int, Progress], number: int) -> None:
    """Buttons to the previous and the next lesson, and the number of answered ones."""
    possible = [lesson.order for lesson in study.possible_lessons(dataset)]
    n_answered, n_asked = sum(_is_answered(lessons, n) for n in possible), sum(_is_asked(lessons, n) for n in possible)
    if n_asked:
        st.progress(n_answered / n_asked, f"{n_answered} of {n_asked} lessons answered")
    before, after = [n for n in possible if n < number], [n for n in possible if n > number]
    row = st.container(horizontal=True)
    row.button("Previous", icon="⬅️", disabled=not before, on_click=_open, args=before[-1:], width="stretch")
    row.button(
        "Next",
        icon="➡️",
        type="primary" if _is_answered(lessons, number) else "secondary",
        disabled=not after,
        on_click=_open,
        args=after[:1],
        width="stretch",
    )


def _is_answered(lessons: Mapping[int, Progress], number: int) -> bool:
    return number in lessons and lessons[number].answer is not None


def _is_asked(lessons: Mapping[int, Progress], number: int) -> bool:
    """Whether a lesson asks a question, as far as it was opened."""
    return number not in lessons or lessons[number].is_asked


def _answer(progress: Progress, option: int, topic: tally.Topic) -> None:
    progress.answer = option
    tally.add(topic, option)


def _clear_answer(progress: Progress) -> None:
    progress.answer = None


def _write_link(requested: str | None, lessons: Mapping[int, Progress]) -> None:
    """Writes the progress to the link once it has changed on this page.

    A page that is only opened keeps its link, so that the browser's back button leaves it at once.
    """
    text = _format(lessons)
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
