"""Lesson 5: test classes far from the training classes (Arnold & Sha 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses.lessons import training_classes
from fsviz.analyses.lessons.training_classes import TransferLesson
from fsviz.figures import class_splits as split_figures
from fsviz.records import Dataset
from fsviz.training import TITLES
from fsviz.ui.pages.learn.lesson import HEIGHT, LessonView, chart
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape

COST = "Accuracy cost"  # section of the page Train–test distance


def _show(dataset: Dataset, lesson: TransferLesson, at: int, visited: Sequence[bool]) -> None:
    split = lesson.splits[at].split
    chart(training_classes.curve(lesson), at, visited)
    st.caption(
        f"{lesson.n_runs:,} recorded networks ({TITLES[training_classes.TRAINER]}), 95% CI over test classes.",
        help=f"Trained on {escape(lesson.date)} in {lesson.minutes:.0f} minutes with those of other methods. Mean "
        "of every split and its mirror image.",
    )
    figure = split_figures.plot_split(split, list(range(len(split.names))), height=HEIGHT, names=False)
    export.chart("Map of the split", figure, key="lesson_map")
    st.caption(
        f"Class means. Divergence reached: **{split.reached:.2f}**. Mean distance of a test class to the nearest "
        f"training class: **{lesson.splits[at].nearest:.2f}**."
    )


def _next_steps(dataset: Dataset, lesson: TransferLesson, at: int) -> None:
    settings = {"divergence": f"{lesson.points['asked'][at]:g}", "show": COST}
    shell.page_link("train_test_distance", "This split and all recorded networks", shell.link(dataset, **settings))


LESSON = LessonView(training_classes.LESSON, _show, _next_steps)
