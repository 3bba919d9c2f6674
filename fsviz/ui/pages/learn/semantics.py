"""Lesson 1: semantically close classes (Bennequin et al. 2022)."""

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


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    position = positions[at]
    chart(positions, at, visited, "semantic weight of the sampled classes")
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


LESSON = Lesson(
    order=1,
    cause="Semantics",
    title="Are tasks with similar classes harder?",
    text="Classes form a taxonomy: two dogs are close, a dog and a cup are not. **Coarsity** is the mean squared "
    "distance between a task's classes; α controls how close the sampled classes are.",
    paper="Bennequin et al. 2022",
    control="Semantic weight α",
    hint="0 samples classes at random. Move right.",
    measure=study.measure_semantics,
    positions=titles,
    ask=study.ask_semantics,
    show=_show,
    next_steps=_next_steps,
)
