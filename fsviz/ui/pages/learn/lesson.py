"""The declaration of a lesson, and what lessons show: accuracy by control position, a task in images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from fsviz.analyses.lessons import ControlPosition, Question, typical
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
class Lesson:
    """One cause of difficulty to try out, declared in a file of this folder as LESSON.

    order         position among the lessons, from 1
    cause         name of the tab
    title         the question of the lesson; text explains it in two sentences
    control       label of the control; hint says what to do with it
    measure       measurements of a dataset: the first argument of `positions` and `ask`
    positions     positions of the control: names in links -> titles
    ask           the question with its answers
    show          figure and images at a position; its last argument says which positions were visited
    next_steps    links to pages that show more, with the same settings
    by_position   whether the position of the control is the answer
    """

    order: int
    cause: str
    title: str
    text: str
    paper: str
    control: str
    hint: str
    measure: Callable[[Dataset], Any]
    positions: Callable[[Any], Mapping[str, str]]
    ask: Callable[[Any], Question]
    show: Callable[[Dataset, Any, int, Sequence[bool]], None]
    next_steps: Callable[[Dataset, Any, int], None]
    by_position: bool = False


def titles(positions: Sequence[ControlPosition]) -> dict[str, str]:
    """Titles of the positions by name."""
    return {position.name: position.title for position in positions}


def chart(
    positions: Sequence[ControlPosition],
    at: int,
    visited: Sequence[bool],
    x_title: str,
    height: int = HEIGHT,
    in_order: bool = True,
) -> None:
    """Accuracy at the visited positions."""
    means, half_widths = zip(*(position.mean for position in positions), strict=True)
    chance_level = 100 * positions[0].tasks.chance_level
    names = [position.title for position in positions]
    figure = figures.plot_positions(names, means, half_widths, visited, at, x_title, chance_level, height, in_order)
    export.chart("Accuracy by position", figure, key="lesson_chart")
    st.caption(
        f"{len(positions[at].tasks):,} tasks per position, ProtoNet, 95% CI.",
        help=f"{escape(positions[at].tasks.setting)}. The interval is over tasks of the same images.",
    )


def same_queries(
    dataset: Dataset, positions: Sequence[ControlPosition], at: int, visited: Sequence[bool], x_title: str, key: str
) -> None:
    """The chart above a typical task, if only the support differs between positions."""
    chart(positions, at, visited, x_title)
    task = typical(positions, at, paired=True)
    accuracy = positions[at].accuracy[task]
    st.markdown(f"**Same queries, support: {escape(positions[at].title)}** · {accuracy:.0f}% correct")
    images(dataset, positions[at], task, f"{key}_{at}")


def images(dataset: Dataset, position: ControlPosition, task: int, key: str, n_queries: int = N_QUERIES) -> None:
    """A task of a position: the support and some queries of every class, correct or incorrect."""
    tasks, predicted = position.tasks, position.predictions.predicted[task]
    class_ids = tasks.class_ids[task]
    names = dataset.distinct_names(class_ids[class_ids != PAD])
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
