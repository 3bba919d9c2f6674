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
from fsviz.ui.pages.learn.lesson import Lesson
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape

COSTS = "What it costs"  # the section of the page Train–test distance


def _show(dataset: Dataset, trained: TransferLesson, at: int, seen: Sequence[bool]) -> None:
    split = trained.found[at].split
    left, right = shell.responsive_columns("distance", 2, gap="large")
    with left:
        points = trained.points
        figure = figures.plot_positions(
            list(_stops(trained).values()),
            points["accuracy"].tolist(),
            points["ci95"].tolist(),
            seen,
            at,
            "divergence that was asked for between train and test classes",
            height=400,
        )
        export.chart("Accuracy against divergence", figure, key="lesson_chart")
        st.caption(
            f"{trained.n_runs:,} networks ({TITLES[study.TRAINED]}) trained on {escape(trained.date)}, recorded: the "
            f"whole grid took {trained.minutes:.0f} minutes. Tasks of the test classes; mean of every split and its "
            "mirror image, 95% intervals over test classes."
        )
    with right:
        figure = split_figures.plot_split(split, list(range(len(split.names))), height=400, names=False)
        export.chart("Map of the split", figure, key="lesson_map")
        st.caption(
            f"Every class by the mean of its features. Divergence reached: **{split.reached:.2f}**; mean distance of a "
            f"test class to the nearest training class: **{trained.found[at].nearest:.2f}**."
        )


def _stops(trained: TransferLesson) -> Mapping[str, str]:
    return {f"{asked:g}": f"R = {asked:g}" for asked in trained.points["asked"]}


def _go_on(dataset: Dataset, trained: TransferLesson, at: int) -> None:
    asked = {"divergence": f"{trained.points['asked'][at]:g}", "show": COSTS}
    label = "This split, its classes, and all recorded networks"
    shell.page_link("train_test_distance", label, shell.link(dataset, **asked))


LESSON = Lesson(
    5,
    "Training classes",
    "Is it harder when test classes are unlike the training classes?",
    "A network learns on some classes and is tested on others. The demo's classes were parted so that the two sides "
    "lie as far apart as was asked for (their **divergence**), and networks trained on each. Read the intervals too.",
    "Arnold & Sha 2021",
    "Divergence R",
    "Move it and watch the two sides part on the map.",
    study.by_divergence,
    _stops,
    study.ask_divergence,
    _show,
    _go_on,
)
