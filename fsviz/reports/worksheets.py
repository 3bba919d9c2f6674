"""The worksheet of lessons: a page each to print, with figure, question and answers to tick; solutions come last."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

from fsviz.analyses.lessons import LESSONS, Lesson, Question, combined, possible_lessons
from fsviz.errors import FsvizError, Missing
from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.reports import html
from fsviz.reports.runs import date_line, strip
from fsviz.tables import TableData

FIGURE_PX = 680, 250  # fits a printed page
_EMPHASIS = "**"  # of lessons' texts, which pages show as Markdown


def worksheet(dataset: Dataset, numbers: Sequence[int] = (), measured: Callable[[Lesson], Any] | None = None) -> str:
    """The lessons of these numbers (default: all) as one HTML file to print.

    measured  gives the measurements of a lesson, if somebody keeps them
    Lessons that the dataset cannot give, or whose answer is not clear there, are named with the reason.
    """
    lessons = possible_lessons(dataset, numbers)
    excluded = [lesson for n, lesson in LESSONS.items() if lesson not in lessons and (not numbers or n in numbers)]
    sheets, left_out = [], []
    for lesson in lessons:
        try:
            values = measured(lesson) if measured else lesson.measure(dataset)
            question = lesson.ask(values)
        except FsvizError as error:
            left_out.append(f"{lesson.order}. {lesson.title} {error}")
            continue
        if question.is_clear:
            sheets.append(_sheet(dataset, lesson, values, question))
        else:
            left_out.append(f"{lesson.order}. {lesson.title} No clear answer here. {question.takeaway}")
    left_out += [f"{lesson.order}. {lesson.title} It {lesson.missing(dataset)}." for lesson in excluded]
    if not sheets:
        raise Missing(f"{dataset.title} has no worksheet: {' '.join(left_out)} Choose another dataset or lesson.")
    return str(html.worksheet(f"Worksheet: {dataset.title}", sheets, left_out, date_line()))


def _sheet(dataset: Dataset, lesson: Lesson, values: Any, question: Question) -> html.Sheet:
    n_positions = len(lesson.positions(values))
    letters = string.ascii_uppercase
    return html.Sheet(
        heading=f"{lesson.order}. {lesson.title}",
        text=lesson.text.replace(_EMPHASIS, ""),
        examples=[
            (example.title, [(name, strip(dataset, ids)) for name, ids in example.rows])
            for example in lesson.examples(dataset, values)
        ],
        figure=None if lesson.by_position else _figure(lesson, values, [at == 0 for at in range(n_positions)]),
        question=question.text,
        choices=list(zip(letters, question.options, strict=False)),
        correct=f"{letters[question.correct]}: {question.options[question.correct]}",
        takeaway=question.takeaway,
        solution=_figure(lesson, values, [True] * n_positions) or TableData(*_correlations(values)),
    )


def _figure(lesson: Lesson, values: Any, visible: Sequence[bool]) -> Any:
    """Accuracy at the visible positions, a question mark at the others; None if positions are not accuracies."""
    if lesson.curve is None:
        return None
    curve = lesson.curve(values)
    rows = (curve.titles, curve.means, curve.half_widths)
    width, height = FIGURE_PX
    figure = figures.plot_positions(*rows, visible, 0, curve.x_title, curve.chance_level, height, curve.in_order)
    return figure.update_layout(width=width)


def _correlations(lesson: combined.CombinedLesson) -> tuple[Any, Any]:
    return combined.MEASURES_TRIED, combined.tried_rows(lesson, list(lesson.measures))
