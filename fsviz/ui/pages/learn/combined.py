"""Lesson 6: several causes at once."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses.lessons import METHOD, combined
from fsviz.analyses.lessons.combined import CombinedLesson
from fsviz.difficulty.measures import MEASURES
from fsviz.figures import lessons as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.studies.prediction.measured import fitted_line
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import HEIGHT, LessonView, images
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.shell import escape


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
    tried = [name for name, is_visited in zip(lesson.measures, visited, strict=True) if is_visited]
    rows = combined.tried_rows(lesson, tried)
    export.table(combined.MEASURES_TRIED, rows, height=min(38 + 35 * len(rows), 180))


def _next_steps(dataset: Dataset, lesson: CombinedLesson, at: int) -> None:
    backbone, tasks = draw.default_backbone(dataset), lesson.position.tasks
    page_links.to_task(dataset, tasks, lesson.hard, backbone, "Edit the hard task", METHOD)
    shape = {"n_way": tasks.n_way, "n_shot": tasks.support.shape[2], "n_query": tasks.query.shape[2]}
    settings = {"split": draw.default_split(dataset), **{name: str(size) for name, size in shape.items()}}
    shell.page_link("causes", "Compare all causes", shell.link(dataset, **settings))


LESSON = LessonView(combined.LESSON, _show, _next_steps)
