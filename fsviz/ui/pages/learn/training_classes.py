"""Lesson 5: test classes far from the training classes (Arnold & Sha 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import TransferLesson
from fsviz.figures import class_splits as split_figures
from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.training import TITLES
from fsviz.ui.pages.learn.lesson import HEIGHT, Lesson
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape

COST = "Accuracy cost"  # section of the page Train–test distance


def _show(dataset: Dataset, lesson: TransferLesson, at: int, visited: Sequence[bool]) -> None:
    split = lesson.splits[at].split
    points = lesson.points
    figure = figures.plot_positions(
        list(_positions(lesson).values()),
        points["accuracy"].tolist(),
        points["ci95"].tolist(),
        visited,
        at,
        "target divergence between training and test classes",
        height=HEIGHT,
    )
    export.chart("Accuracy by divergence", figure, key="lesson_chart")
    st.caption(
        f"{lesson.n_runs:,} recorded networks ({TITLES[study.TRAINER]}), 95% CI over test classes.",
        help=f"Trained on {escape(lesson.date)} in {lesson.minutes:.0f} minutes with those of other methods. Mean "
        "of every split and its mirror image.",
    )
    figure = split_figures.plot_split(split, list(range(len(split.names))), height=HEIGHT, names=False)
    export.chart("Map of the split", figure, key="lesson_map")
    st.caption(
        f"Class means. Divergence reached: **{split.reached:.2f}**. Mean distance of a test class to the nearest "
        f"training class: **{lesson.splits[at].nearest:.2f}**."
    )


def _positions(lesson: TransferLesson) -> Mapping[str, str]:
    return {f"{target:g}": f"R = {target:g}" for target in lesson.points["asked"]}


def _next_steps(dataset: Dataset, lesson: TransferLesson, at: int) -> None:
    settings = {"divergence": f"{lesson.points['asked'][at]:g}", "show": COST}
    shell.page_link("train_test_distance", "This split and all recorded networks", shell.link(dataset, **settings))


LESSON = Lesson(
    order=5,
    cause="Training classes",
    title="Is it harder if test classes differ from training classes?",
    text="A network trains on some classes and is tested on others. Here the two sets lie at a chosen **divergence**.",
    paper="Arnold & Sha 2021",
    control="Divergence R",
    hint="Watch the two sets move apart.",
    measure=study.measure_transfer,
    positions=_positions,
    ask=study.ask_transfer,
    show=_show,
    next_steps=_next_steps,
)
