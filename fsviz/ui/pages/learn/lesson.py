"""The view of a lesson: accuracy by control position, and a task in images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from fsviz.analyses.lessons import ControlPosition, Curve, Lesson, typical
from fsviz.figures import lessons as figures
from fsviz.records import PAD, Dataset
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

N_QUERIES = 4  # per class that are shown of a task: with the support, a row
TILE, LARGE = 60, 72
HEIGHT = 270  # of a chart, pixels
LEGEND = "✓ correct · ✗ incorrect, with the predicted class."


@dataclass(frozen=True)
class LessonView:
    """A lesson on the page Learn, declared in a file of this folder as LESSON.

    show        figure and images at a position; its last argument says which positions were visited
    next_steps  links to pages that show more, with the same settings
    """

    lesson: Lesson
    show: Callable[[Dataset, Any, int, Sequence[bool]], None]
    next_steps: Callable[[Dataset, Any, int], None]


def chart(curve: Curve, at: int, visited: Sequence[bool]) -> None:
    """Accuracy at the visited positions."""
    values = (curve.titles, curve.means, curve.half_widths)
    figure = figures.plot_positions(*values, visited, at, curve.x_title, curve.chance_level, HEIGHT, curve.in_order)
    export.chart("Accuracy by position", figure, key="lesson_chart")


def describe_chart(position: ControlPosition) -> None:
    st.caption(
        f"{len(position.tasks):,} tasks per position, ProtoNet, 95% CI.",
        help=f"{escape(position.tasks.setting)}. The interval is over tasks of the same images.",
    )


def same_queries(
    lesson: Lesson, dataset: Dataset, positions: Sequence[ControlPosition], at: int, visited: Sequence[bool]
) -> None:
    """The chart above a typical task, if only the support differs between positions."""
    assert lesson.curve is not None
    chart(lesson.curve(positions), at, visited)
    describe_chart(positions[at])
    task = typical(positions, at, paired=True)
    accuracy = positions[at].accuracy[task]
    st.markdown(f"**Same queries, support: {escape(positions[at].title)}** · {accuracy:.0f}% correct")
    images(dataset, positions[at], task, f"{lesson.cause.lower()}_{at}")


def images(dataset: Dataset, position: ControlPosition, task: int, key: str, n_queries: int = N_QUERIES) -> None:
    """A task of a position: the support and some queries of every class, correct or incorrect."""
    tasks, predicted = position.tasks, position.predictions.predicted[task]
    class_ids = tasks.class_ids[task]
    names = dataset.short_names(class_ids[class_ids != PAD])
    rows = []
    for way, name in enumerate(names):
        query = tasks.query[task, way]
        correct = predicted[way] == way
        support = [Tile(int(i), badge="support") for i in tasks.support[task, way] if i != PAD]
        queries = [
            Tile(int(i), frame="right" if correct[q] else "wrong", badge="" if correct[q] else names[predicted[way, q]])
            for q, i in enumerate(query[:n_queries])
            if i != PAD
        ]
        is_query = query != PAD
        rows.append(Row(name, [*support, *queries], f"{int(correct[is_query].sum())} of {int(is_query.sum())}"))
    clicked = task_rows(dataset, rows, key, tile_px=LARGE if shell.classroom() else TILE)
    st.caption(LEGEND)
    page_links.to_gallery(dataset, clicked)
