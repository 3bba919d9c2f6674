"""Lesson 3: classes that look alike to the backbone (Bontonou et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ClassPairs
from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, chart, images, titles
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape


def _show(dataset: Dataset, pairs: ClassPairs, at: int, seen: Sequence[bool]) -> None:
    stop = pairs.stops[at]
    left, right = shell.responsive_columns("looks", 2, gap="large")
    with left:
        chart(pairs.stops, at, seen, f"partner of {pairs.name}", height=300, in_order=False)
    with right:
        figure = figures.plot_clouds(pairs.points[at], pairs.labels[at], (pairs.name, stop.title), height=300)
        export.chart("Images of both classes", figure, key="lesson_clouds")
        st.caption(
            f"All images of {escape(pairs.name)} and {escape(stop.title)} by their features. Communities of "
            "images that "
            f"look alike leave **{stop.facts['confusion']:.2f} bits** of the class unknown (0: they are of one class "
            "each, 1: they tell nothing)."
        )
    images(dataset, stop, study.typical(pairs.stops, at, paired=False), f"looks_{at}", n_queries=10)


def _stops(pairs: ClassPairs) -> Mapping[str, str]:
    return titles(pairs.stops)


def _go_on(dataset: Dataset, pairs: ClassPairs, at: int) -> None:
    asked = {"split": draw.default_split(dataset), "classes": [pairs.name, pairs.stops[at].title]}
    label = f"{escape(pairs.name)} and {escape(pairs.stops[at].title)} among all classes, with the images behind it"
    shell.page_link("confusion", label, shell.link(dataset, **asked))


LESSON = Lesson(
    3,
    "Confusion",
    "Which classes does the backbone mix up?",
    "What counts is how classes look to the **backbone**, the network that turns images into features. One class "
    "stays, its partner changes. Where the images of both form one cloud, one labelled image of each cannot part them.",
    "Bontonou et al. 2020",
    "Partner",
    "They stand in the order of the alphabet. Try them all.",
    study.by_looks,
    _stops,
    study.ask_looks,
    _show,
    _go_on,
    by_position=True,
)
