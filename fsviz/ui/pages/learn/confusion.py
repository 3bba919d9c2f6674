"""Lesson 3: classes that overlap in feature space (Bontonou et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fsviz.analyses.lessons import confusion, typical
from fsviz.analyses.lessons.confusion import ClassPairs
from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import HEIGHT, LessonView, chart, describe_chart, images
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape


def _show(dataset: Dataset, pairs: ClassPairs, at: int, visited: Sequence[bool]) -> None:
    position = pairs.positions[at]
    left, right = shell.responsive_columns("confusion", 2, gap="small")
    with left:
        chart(confusion.curve(pairs), at, visited)
        describe_chart(position)
    with right:
        figure = figures.plot_clouds(pairs.points[at], pairs.labels[at], (pairs.name, position.title), height=HEIGHT)
        export.chart("Images of both classes", figure, key="lesson_clouds")
        st.caption(
            f"All images of {escape(pairs.name)} and {escape(position.title)} by their features. Class overlap: "
            f"**{position.facts['confusion']:.2f} bits** (0: separate, 1: fully mixed)."
        )
    images(dataset, position, typical(pairs.positions, at, paired=False), f"confusion_{at}", n_queries=10)


def _next_steps(dataset: Dataset, pairs: ClassPairs, at: int) -> None:
    partner, class_ids = pairs.positions[at].title, np.array([pairs.class_id, pairs.partners[at]])
    settings = {"split": draw.default_split(dataset), "classes": dataset.distinct_names(class_ids)}
    label = f"{escape(pairs.name)} and {escape(partner)} among all classes"
    shell.page_link("confusion", label, shell.link(dataset, **settings))


LESSON = LessonView(confusion.LESSON, _show, _next_steps)
