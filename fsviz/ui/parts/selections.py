"""Selections that follow the visitor from page to page: classes, and a task.

Only navigation carries them: a link with settings of its own decides alone. The record of a page declares what it
takes. A carried selection becomes part of the link of the page.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fsviz.analyses import custom_task
from fsviz.records import Dataset, TaskId, Tasks
from fsviz.settings import Setting
from fsviz.tasks import draw
from fsviz.ui.parts import links

_CLASSES = "_picked_classes"
_TASK = "_picked_task"
CLASSES = Setting("classes", "Classes", "The selected classes.", "names", [])
KEY = CLASSES.name  # of the widget, on every page that has one


def pick_classes(options: Sequence[str], most: int | None = None) -> None:
    """Prepares the widget of classes that is about to be drawn under KEY, and stores its selection."""
    links.names_of(options, CLASSES.name, most)
    st.session_state[_CLASSES] = (st.session_state.get("_dataset", ""), list(st.session_state[KEY]))


def show(dataset: Dataset, tasks: Tasks, at: int, task_id: TaskId | None, picked: bool = False) -> None:
    """Stores the task that a page shows; `picked` is implied if another task of its testbed was shown before."""
    before = st.session_state.get(_TASK) or {}
    page, testbed = st.session_state.get("_page"), task_id.testbed if task_id else ""
    again = before.get("page") == page and before.get("testbed") == testbed and testbed != ""
    same = again and before.get("task_id") == task_id
    st.session_state[_TASK] = {
        "page": page,
        "dataset": dataset.name,
        "testbed": testbed,
        "task_id": task_id,
        "picked": picked or (before["picked"] if same else again),
        "images": (tasks.support[at], tasks.query[at]) if tasks.has_images else None,
        "class_ids": tasks.class_ids[at],
    }


def task_of(dataset: Dataset) -> TaskId | None:
    """The task that was last shown on any page, if it is of this dataset."""
    record = st.session_state.get(_TASK) or {}
    return record.get("task_id") if record.get("dataset") == dataset.name else None


def arrive(dataset: Dataset, takes: Sequence[str]) -> None:
    """Applies earlier selections to a page that was opened by navigation.

    takes  "classes" for a widget of classes; "task_of" for the classes or the task that is built; "task" for a task
           on the map
    """
    if not takes or not links.is_bare():
        return
    record = st.session_state.get(_TASK) or {}
    task = record if record.get("picked") and record.get("dataset") == dataset.name and record.get("images") else None
    if task and "task" in takes:
        support, query = (custom_task.images_text(side[task["class_ids"] >= 0]) for side in task["images"])
        links.say(testbed=custom_task.LINKED, support=support, query=query)
    of, names = st.session_state.get(_CLASSES, ("", []))
    class_ids = _class_ids_of(dataset, names) if of == dataset.name else []
    if "task_of" in takes and (task or 2 <= len(class_ids) <= custom_task.MAX_CLASSES):
        _build(dataset, task, class_ids)
    if "classes" in takes and class_ids:
        links.say(classes=names, **({} if "all" in takes else _split(dataset, class_ids)))


def _build(dataset: Dataset, task: dict | None, class_ids: list[int]) -> None:
    if task is None:
        links.say(**{custom_task.TASK_OF.name: custom_task.classes_text(dataset, class_ids)})
        return
    there = task["class_ids"] >= 0
    if there.sum() > custom_task.MAX_CLASSES:
        return
    support, query = (side[there] for side in task["images"])
    links.say(
        **{custom_task.TASK_OF.name: custom_task.classes_text(dataset, task["class_ids"][there].tolist())},
        support=custom_task.images_text(support),
        query=custom_task.images_text(query),
        n_shot=str(support.shape[1]),
        n_query=str(query.shape[1]),
    )


def _class_ids_of(dataset: Dataset, names: Sequence[str]) -> list[int]:
    place = {name: i for i, name in enumerate(dataset.distinct_names(np.arange(dataset.n_classes)))}
    return [place[name] for name in names if name in place]


def _split(dataset: Dataset, class_ids: list[int]) -> dict[str, str]:
    """A split with all these classes, if the default split lacks one of them."""
    splits = (draw.default_split(dataset), *sorted(dataset.splits, key=lambda s: len(dataset.splits[s])), "all")
    first = next(s for s in splits if np.isin(class_ids, dataset.split_class_ids(s)).all())
    return {"split": first} if first != splits[0] else {}
