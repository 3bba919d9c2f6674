"""The table of tasks with their images, and the selected task."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.analyses import support_attributes
from fsviz.analyses.support_attributes import AttributeEffects
from fsviz.difficulty.objectives import OBJECTIVES
from fsviz.records import PAD, Dataset, Progress
from fsviz.settings import RawSettings
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.tables import Column, Table
from fsviz.ui.parts import drilldown, export, links, task_list
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.image_wall import strip_uri

PER_PAGE = 40
MAX_CLASSES = 5  # of a task that have an image in the table
STRIP_PX = 32
TASK = task_list.TASK.with_(kind="int", default=-1, low=-1)  # -1 is the first of the list
NO_ATTRIBUTE = "no attribute"
PROGRESS_TITLE = "Searching hard and easy support sets"

TASKS = Table(
    "Tasks",
    Column("task", "Task", kind="count", width=50),
    Column(
        "images",
        "Hard support",
        kind="image",
        width=MAX_CLASSES * (STRIP_PX + 2),
        help="The first hard support image of each class.",
    ),
    Column(
        "explained",
        "Attribute",
        width=150,
        help="The attribute shift that accounts for most of the cost of the hard support, in points.",
    ),
    *(
        Column(
            name,
            name.capitalize(),
            "%",
            0,
            kind="bar",
            high=100,
            width=68,
            help=f"Queries classified correctly with {name} support images.",
        )
        for name in study.SETS
    ),
    Column("classes", "Classes", kind="class", width=340),
)


def about(sets: SupportSets) -> str:
    """The key of the results that a selected task or bar belongs to; other settings clear the selection."""
    return json.dumps(sets.cache_key)


def search(spec: RawSettings) -> SupportSets:
    """Hard, random and easy support sets, searched while the page waits."""
    return compute_with_progress(jobs.compute, {"study": study.STUDY.name, **spec}, PROGRESS_TITLE)


def explained(sets: SupportSets, dataset: Dataset) -> AttributeEffects | None:
    """Effects of attribute shifts on accuracy; None without attributes."""
    if not support_attributes.attribute_names(dataset):
        return None

    def explain(spec: RawSettings, progress: Progress) -> AttributeEffects | None:
        return support_attributes.explain(sets, dataset, progress)

    spec = {**sets.spec, "n_tasks": len(sets)}
    return compute_with_progress(explain, spec, "Measuring the cost of attribute shifts")


def selected_task(sets: SupportSets) -> int | None:
    """The selected task; None without a selection."""
    task = int(links.value_of(TASK.with_(high=len(sets) - 1), TASK.name, about(sets)))
    return None if task < 0 else task


def task_table(dataset: Dataset, sets: SupportSets, explained: AttributeEffects | None) -> pd.DataFrame:
    """A row per task: accuracies, what explains the hard support, classes."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = pd.DataFrame({"task": np.arange(len(sets))})
    for name in study.SETS:
        rows[name] = 100 * sets.accuracy(name)
    if explained is not None:
        points, first = explained.points, explained.largest_effect()
        rows["explained"] = [
            NO_ATTRIBUTE if a == PAD else f"{explained.attributes[a].name}, {points[t, a]:.1f} points"
            for t, a in enumerate(first)
        ]
    rows["classes"] = [names[row[row != PAD]].tolist() for row in sets.tasks["random"].class_ids]
    return rows


def show(dataset: Dataset, sets: SupportSets, rows: pd.DataFrame, key: str) -> int:
    """Shows the table, page by page, with an image of each class; returns the selected task."""
    n_pages = -(-len(rows) // PER_PAGE)
    page = st.pagination(n_pages, key=f"{key}_page_{n_pages}") if n_pages > 1 else 1
    listed = rows.iloc[(page - 1) * PER_PAGE : page * PER_PAGE]
    if dataset.has_pixels:
        listed = listed.assign(images=[_strip(dataset, sets, int(t)) for t in listed["task"]])
    row_height = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        TASKS,
        listed,
        key=key,
        sets=Click(TASK, listed["task"].tolist()),
        height=min(40 + row_height * len(listed), 40 + 5 * row_height),
        row_height=row_height,
    )
    selected = selected_task(sets)
    return int(rows["task"].iloc[0]) if selected is None else selected


def _strip(dataset: Dataset, sets: SupportSets, task: int) -> str:
    support = sets.tasks["hard"].support[task]
    first = [int(of_class[of_class != PAD][0]) for of_class in support if (of_class != PAD).any()]
    return strip_uri(dataset, first[:MAX_CLASSES], STRIP_PX)


def show_some(dataset: Dataset, sets: SupportSets, positions: np.ndarray, key: str) -> int | None:
    """Shows some tasks in their order; returns the selected one, None if there are none."""
    if not len(positions):
        st.caption("No tasks here.")
        return None
    rows = task_table(dataset, sets, explained(sets, dataset)).iloc[positions]
    task = show(dataset, sets, rows, key)
    return task if task in set(map(int, positions)) else int(positions[0])


def of_search(dataset: Dataset, spec: RawSettings, name: str, which: str = "hard") -> None:
    """The tasks of a search with other settings, hardest or easiest first, with predictions.

    name   the key of the selected task in the link
    which  the objective
    """
    sets = search(spec)
    accuracy, random = (100 * sets.accuracy(name) for name in (which, "random"))
    order = np.argsort(OBJECTIVES[which].sign * accuracy, kind="stable")
    notes = {
        int(t): f"{accuracy[t]:.0f}% correct with {which} supports, {random[t]:.0f}% with random ones" for t in order
    }
    owner = f"{about(sets)} {which}"
    drilldown.tasks(dataset, sets.tasks[which], order, notes, owner, name, sets.predictions[which])
