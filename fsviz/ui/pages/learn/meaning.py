"""Lesson 1: classes that are close in meaning (Bennequin et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, chart, images, titles
from fsviz.ui.parts import shell
from fsviz.ui.parts.shell import escape


def _show(dataset: Dataset, stops: list[ControlPosition], at: int, seen: Sequence[bool]) -> None:
    left, right = shell.responsive_columns("meaning", 2, gap="large")
    with left:
        chart(stops, at, seen, "closeness in meaning that classes are drawn with")
    with right:
        task = study.typical(stops, at, paired=False)
        apart = stops[at].tasks.measures["coarsity"][task]
        st.markdown(
            f"**A typical task at {escape(stops[at].title)}**: coarsity {apart:.0f} (mean of all: "
            f"{stops[at].facts['coarsity']:.0f}), {stops[at].accuracy[task]:.0f}% right"
        )
        images(dataset, stops[at], task, f"meaning_{at}")


def _go_on(dataset: Dataset, stops: list[ControlPosition], at: int) -> None:
    asked = {"split": draw.default_split(dataset), "sampler": "semantic", "alpha": stops[at].name}
    label = f"Draw tasks at {escape(stops[at].title)}, see their coarsity"
    shell.page_link("sample_tasks", label, shell.link(dataset, **asked))


LESSON = Lesson(
    1,
    "Meaning",
    "Is a task harder when its classes mean nearly the same?",
    "Classes hang in a tree of meanings, and two are close when a small concept holds both: two dogs, not a dog and a "
    "cup. How far apart those of a task are is its **coarsity**. α says how much closeness counts when they are drawn.",
    "Bennequin et al. 2022",
    "Closeness α",
    "0 draws classes at random. Move it to the right and watch classes and accuracy.",
    study.by_meaning,
    titles,
    study.ask_meaning,
    _show,
    _go_on,
)
