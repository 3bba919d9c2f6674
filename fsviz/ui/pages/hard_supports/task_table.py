"""Tasks of the page as a list with their images, and the one that was chosen: by its row, by a click, by the link."""

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
MOST_CLASSES = 5  # of a task that stand in the list with an image
STRIP_PX = 32
TASK = task_list.TASK.with_(kind="int", default=-1, low=-1)  # -1 is the first of the list
NO_ATTRIBUTE = "no attribute"
SEARCHING = "Searching hard and easy support sets"

TASKS = Table(
    "Tasks",
    Column("task", "Task", kind="count", width=50),
    Column(
        "images",
        "Hard support",
        kind="image",
        width=MOST_CLASSES * (STRIP_PX + 2),
        help="The first hard support image of each class.",
    ),
    Column(
        "explained",
        "Explained by",
        width=150,
        help="The attribute that explains most of what the hard support costs, and how many points.",
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
    Column("classes", "Classes", width=340),
)


def about(found: SupportSets) -> str:
    """What a chosen task or bar belongs to: with other settings it starts over."""
    return json.dumps(found.cache_key)


def search(spec: RawSettings) -> SupportSets:
    """Hard, random and easy support sets, searched while the page waits."""
    return compute_with_progress(jobs.compute, {"study": study.STUDY.name, **spec}, SEARCHING)


def explained(found: SupportSets, dataset: Dataset) -> AttributeEffects | None:
    """What explains that hard supports are hard, measured once with a bar; None where there are no attributes."""
    if not support_attributes.attribute_names(dataset):
        return None

    def explain(spec: RawSettings, progress: Progress) -> AttributeEffects | None:
        return support_attributes.explain(found, dataset, progress)

    asked = {**found.spec, "n_tasks": len(found)}
    return compute_with_progress(explain, asked, "Measuring what gaps between support and query cost")


def chosen_task(found: SupportSets) -> int | None:
    """The task that was chosen by a row, a point or the link; None where none was."""
    task = int(links.value_of(TASK.with_(high=len(found) - 1), TASK.name, about(found)))
    return None if task < 0 else task


def task_table(dataset: Dataset, found: SupportSets, explained: AttributeEffects | None) -> pd.DataFrame:
    """A row per task: accuracies, what explains the hard support, classes."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = pd.DataFrame({"task": np.arange(len(found))})
    for name in study.SETS:
        rows[name] = 100 * found.accuracy(name)
    if explained is not None:
        points, first = explained.points, explained.costliest()
        rows["explained"] = [
            NO_ATTRIBUTE if a == PAD else f"{explained.attributes[a].name}, {points[t, a]:.1f} points"
            for t, a in enumerate(first)
        ]
    rows["classes"] = [", ".join(names[row[row != PAD]]) for row in found.tasks["random"].class_ids]
    return rows


def show(dataset: Dataset, found: SupportSets, rows: pd.DataFrame, key: str) -> int:
    """The list, page by page, with an image of each class; the number of the task that is chosen out of it."""
    n_pages = -(-len(rows) // PER_PAGE)
    page = st.pagination(n_pages, key=f"{key}_page_{n_pages}") if n_pages > 1 else 1
    part = rows.iloc[(page - 1) * PER_PAGE : page * PER_PAGE]
    if dataset.has_pixels:
        part = part.assign(images=[_strip(dataset, found, int(t)) for t in part["task"]])
    listed = part["task"].tolist()
    tall = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        TASKS,
        part,
        key=key,
        sets=Click(TASK, listed),
        height=min(40 + tall * len(part), 40 + 5 * tall),
        row_height=tall,
    )
    chosen = chosen_task(found)
    return int(rows["task"].iloc[0]) if chosen is None else chosen


def _strip(dataset: Dataset, found: SupportSets, task: int) -> str:
    support = found.tasks["hard"].support[task]
    first = [int(of_class[of_class != PAD][0]) for of_class in support if (of_class != PAD).any()]
    return strip_uri(dataset, first[:MOST_CLASSES], STRIP_PX)


def show_some(dataset: Dataset, found: SupportSets, which: np.ndarray, key: str) -> int | None:
    """Some tasks as a list, in their order, under a figure that names them; the chosen one, None where none are."""
    if not len(which):
        st.caption("There is no such task.")
        return None
    rows = task_table(dataset, found, explained(found, dataset)).iloc[which]
    task = show(dataset, found, rows, key)
    return task if task in set(map(int, which)) else int(which[0])


def of_search(dataset: Dataset, spec: RawSettings, name: str, which: str = "hard") -> None:
    """The tasks of a search with other settings, those of the superlative of an objective first, with predictions.

    name   the key of the chosen task in the link
    which  the objective
    """
    found = search(spec)
    right, random = (100 * found.accuracy(each) for each in (which, "random"))
    order = np.argsort(OBJECTIVES[which].sign * right, kind="stable")
    notes = {int(t): f"{right[t]:.0f}% right with {which} supports, {random[t]:.0f}% with random ones" for t in order}
    whose = f"{about(found)} {which}"
    drilldown.tasks(dataset, found.tasks[which], order, notes, whose, name, found.predictions[which])
