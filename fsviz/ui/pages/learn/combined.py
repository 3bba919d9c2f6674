"""Lesson 6: several causes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import CombinedLesson
from fsviz.difficulty.measures import MEASURES
from fsviz.figures import lessons as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.studies.prediction.measured import fitted_line
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import HEIGHT, Lesson, images
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.shell import escape

MEASURES_TRIED = Table(
    "Measures tried",
    Column("title", "Measure"),
    Column("correlation", "r", digits=2, kind="number", help="Correlation with accuracy."),
    Column("points", "Difference explained", kind="points", help="Of the points between the two tasks."),
)


def _show(dataset: Dataset, lesson: CombinedLesson, at: int, visited: Sequence[bool]) -> None:
    _chart(lesson, list(lesson.measures)[at])
    _numbers(lesson, list(lesson.measures)[at], visited)
    accuracy = lesson.position.accuracy
    columns = shell.responsive_columns("two_tasks", 2, gap="small")
    for column, name, task in zip(columns, ("Hard", "Easy"), (lesson.hard, lesson.easy), strict=True):
        with column:
            st.markdown(f"**{name} task**: {accuracy[task]:.0f}% correct")
            images(dataset, lesson.position, task, f"combined_{name}")


def _chart(lesson: CombinedLesson, name: str) -> None:
    measure, values, accuracy = MEASURES[name], lesson.measures[name].to_numpy(), lesson.position.accuracy
    line = fitted_line(values, accuracy)
    figure = figures.plot_cause(values, accuracy, line, lesson.hard, lesson.easy, measure.title, HEIGHT)
    export.chart("Accuracy by measure", figure, key="lesson_chart")
    st.caption(
        f"{len(accuracy):,} random tasks, ProtoNet.",
        help=f"{escape(measure.description)} {escape(lesson.position.tasks.setting)}.",
    )


def _numbers(lesson: CombinedLesson, name: str, visited: Sequence[bool]) -> None:
    """Correlation of a measure, the two tasks by it, and the measures tried so far."""
    correlation, accuracy = lesson.correlations[name], lesson.position.accuracy
    number = HeadlineNumber(
        "correlation",
        "Correlation with accuracy",
        correlation.value,
        unit="",
        digits=2,
        note=f"95% CI {correlation.low:.2f} to {correlation.high:.2f}",
        help=f"Higher is {MEASURES[name].direction}. CI over {correlation.ci_unit}.",
    )
    left, right = shell.responsive_columns("correlation", [2, 3], gap="medium")
    show_number(number, left)
    for which, task in (("Hard", lesson.hard), ("Easy", lesson.easy)):
        percentile = lesson.percentile(name, task)
        text = f"{which} task ({accuracy[task]:.0f}% correct): harder than {percentile:.0f}% of tasks"
        right.progress(percentile / 100, text)
    rows = [
        {
            "title": MEASURES[tried].title,
            "correlation": lesson.correlations[tried].value,
            "points": lesson.points(tried),
        }
        for tried, is_visited in zip(lesson.measures, visited, strict=True)
        if is_visited
    ]
    export.table(MEASURES_TRIED, rows, height=min(38 + 35 * len(rows), 180))


def _positions(lesson: CombinedLesson) -> Mapping[str, str]:
    return {name: MEASURES[name].title for name in lesson.measures}


def _next_steps(dataset: Dataset, lesson: CombinedLesson, at: int) -> None:
    backbone, tasks = draw.default_backbone(dataset), lesson.position.tasks
    page_links.to_task(dataset, tasks, lesson.hard, backbone, "Edit the hard task", study.METHOD)
    settings = {"split": draw.default_split(dataset), **{name: str(n) for name, n in study.SHAPE.items()}}
    shell.page_link("causes", "Compare all causes", shell.link(dataset, **settings))


LESSON = Lesson(
    order=6,
    cause="Combined",
    title="Which cause matters most?",
    text="Real tasks combine all causes. A useful measure correlates with accuracy and differs between the hard and "
    "the easy task.",
    paper="Bennequin et al. 2022 and Bontonou et al. 2020",
    control="Measure",
    hint="Which one orders the tasks best?",
    measure=study.measure_combined,
    positions=_positions,
    ask=study.ask_combined,
    show=_show,
    next_steps=_next_steps,
    by_position=True,
)
