"""Lesson 1: semantically close classes (Bennequin et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition, semantics
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import LessonView, chart, describe_chart, images
from fsviz.ui.parts import shell
from fsviz.ui.parts.shell import escape


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    position = positions[at]
    chart(semantics.curve(positions), at, visited)
    describe_chart(position)
    task = study.typical(positions, at, paired=False)
    coarsity = position.tasks.measures["coarsity"][task]
    st.markdown(
        f"**Typical task at {escape(position.title)}**: coarsity {coarsity:.0f} (mean "
        f"{position.facts['coarsity']:.0f}), {position.accuracy[task]:.0f}% correct"
    )
    images(dataset, position, task, f"semantics_{at}")


def _next_steps(dataset: Dataset, positions: list[ControlPosition], at: int) -> None:
    settings = {"split": draw.default_split(dataset), "sampler": "semantic", "alpha": positions[at].name}
    shell.page_link("sample_tasks", f"Sample tasks at {escape(positions[at].title)}", shell.link(dataset, **settings))


LESSON = LessonView(semantics.LESSON, _show, _next_steps)
