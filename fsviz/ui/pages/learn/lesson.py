"""What a lesson says of itself, and the pieces that lessons show: a chart position by position, a task in images."""

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


@dataclass(frozen=True)
class Lesson:
    """One cause of difficulty to try out, declared in a file of this folder as LESSON.

    place    where it stands among the lessons, from 1
    cause    in a word or two; title is the question it answers
    told     what the learner needs to know, in a few sentences
    control  what is moved, and `do` what to look for
    measure  what is measured of a dataset: everything that `stops`, `ask`, `show` and `go_on` are given
    stops    the positions of the control: names for the link, titles for people
    ask      the question, its answers and which of them is right
    show     the figure and the images at a position; it is told which positions were seen
    go_on    the way to the page that shows more, with these settings
    by_position  whether the answer is where the control stands
    """

    place: int
    cause: str
    title: str
    told: str
    paper: str
    control: str
    do: str
    measure: Callable[[Dataset], Any]
    stops: Callable[[Any], Mapping[str, str]]
    ask: Callable[[Any], Question]
    show: Callable[[Dataset, Any, int, Sequence[bool]], None]
    go_on: Callable[[Dataset, Any, int], None]
    by_position: bool = False


def titles(stops: Sequence[ControlPosition]) -> dict[str, str]:
    return {stop.name: stop.title for stop in stops}


def chart(
    stops: Sequence[ControlPosition],
    at: int,
    seen: Sequence[bool],
    x_title: str,
    height: int = 320,
    in_order: bool = True,
) -> None:
    """Accuracy at the positions that were seen."""
    means, halves = zip(*(stop.mean for stop in stops), strict=True)
    chance = 100 * stops[0].tasks.chance_level
    figure = figures.plot_positions(
        [s.title for s in stops], means, halves, seen, at, x_title, chance, height, in_order
    )
    export.chart("Accuracy at every position", figure, key="lesson_chart")
    tasks = stops[at].tasks
    st.caption(
        f"Mean of {len(tasks):,} tasks ({escape(tasks.setting)}) at every position, nearest prototype (ProtoNet), with "
        "95% intervals over tasks of these images."
    )


def same_queries(
    dataset: Dataset, stops: Sequence[ControlPosition], at: int, seen: Sequence[bool], x_title: str, key: str
) -> None:
    """The chart beside a typical task, where only the support differs between positions."""
    left, right = shell.responsive_columns(key, 2, gap="large")
    with left:
        chart(stops, at, seen, x_title)
    with right:
        task = typical(stops, at, paired=True)
        st.markdown(f"**The same queries, support: {escape(stops[at].title)}** · {stops[at].accuracy[task]:.0f}% right")
        images(dataset, stops[at], task, f"{key}_{at}")


def images(dataset: Dataset, stop: ControlPosition, task: int, key: str, n_queries: int = N_QUERIES) -> None:
    """A task of a position: the support and some queries of every class, right or wrong."""
    tasks, predicted = stop.tasks, stop.predictions.predicted[task]
    class_ids = tasks.class_ids[task]
    names = dataset.distinct_names(class_ids[class_ids != PAD])
    rows = []
    for way, name in enumerate(names):
        query = tasks.query[task, way]
        fine = predicted[way] == way
        support = [Tile(int(i), badge="support") for i in tasks.support[task, way] if i != PAD]
        queries = [
            Tile(int(i), frame="right" if fine[q] else "wrong", badge="" if fine[q] else names[predicted[way, q]])
            for q, i in enumerate(query[:n_queries])
            if i != PAD
        ]
        rows.append(Row(name, [*support, *queries], f"{int(fine[query != PAD].sum())} of {int((query != PAD).sum())}"))
    clicked = task_rows(dataset, rows, key, tile_px=LARGE if shell.classroom() else TILE)
    page_links.to_gallery(dataset, clicked)
