"""Links from an image, a task, classes or a table row to the pages with details."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import custom_task
from fsviz.records import PAD, Dataset, TaskId, Tasks
from fsviz.tasks import draw, task_ids
from fsviz.ui.parts import selections, shell


def to_gallery(dataset: Dataset, clicked: int | None) -> None:
    """Shows a link to the clicked image of a wall; nothing without a click."""
    if clicked is None:
        return
    st.session_state.pop("seen_dataset", None)  # the link names the image, not the last click there
    shell.page_link("images", "Open in Images", shell.link(dataset, image=str(clicked)))


def to_passport(dataset: Dataset, name: str, position: int, label: str = "Full task profile") -> None:
    """Shows a link to the profile of a task; `name` is that of its testbed (see fsviz.tasks.task_ids)."""
    query = {task_ids.TASK_NAME.name: f"{name}:{position}"}
    shell.page_link("task", label, shell.link(dataset, **query))


def to_task(dataset: Dataset, tasks: Tasks, at: int, backbone: str, label: str, method: str = "protonet") -> None:
    """Shows a link to the editor of a task, where its support images can be swapped."""
    class_ids, support, query = tasks.class_ids[at], tasks.support[at], tasks.query[at]
    there = class_ids != PAD
    if there.sum() > custom_task.MAX_CLASSES:
        return
    link_query = {
        custom_task.TASK_OF.name: custom_task.classes_text(dataset, class_ids[there].tolist()),
        "support": custom_task.images_text(support[there]),
        "query": custom_task.images_text(query[there]),
        "n_shot": str(support.shape[1]),
        "n_query": str(query.shape[1]),
        "backbone": backbone,
        "method": method,
    }
    shell.page_link("edit_task", label, shell.link(dataset, **link_query))


def from_task(
    dataset: Dataset,
    tasks: Tasks,
    at: int,
    backbone: str = "",
    method: str = "protonet",
    task_id: TaskId | None = None,
    on_map: bool = True,
) -> None:
    """Shows links from a task to its profile, to the editor of its support images, and to its place on the map.

    task_id  its id in links, if its testbed has a name (see fsviz.tasks.task_ids); else its images are the id
    on_map   whether to link to the map, unless it is shown already
    """
    if task_id is None and tasks.has_images:
        task_id = TaskId(task_ids.images_name(dataset, tasks, at), 0)
    selections.show(dataset, tasks, at, task_id)
    swappable = dataset.has_features and tasks.has_images
    swappable = swappable and (tasks.class_ids[at] != PAD).sum() <= custom_task.MAX_CLASSES
    with st.container(horizontal=True, gap="medium"):
        if task_id is not None:
            to_passport(dataset, task_id.testbed, task_id.position)
        if swappable:
            backbone = backbone or draw.default_backbone(dataset)
            to_task(dataset, tasks, at, backbone, "Edit support images", method)
            if on_map:
                to_map(dataset, tasks, at, backbone)


def to_map(dataset: Dataset, tasks: Tasks, at: int, backbone: str) -> None:
    """Shows a link to the feature map with this task on it."""
    there = tasks.class_ids[at] != PAD
    query = {
        "testbed": custom_task.LINKED,
        "support": custom_task.images_text(tasks.support[at][there]),
        "query": custom_task.images_text(tasks.query[at][there]),
        "backbone": backbone,
    }
    shell.page_link("image_map", "Show on map", shell.link(dataset, **query))


def to_classes(dataset: Dataset, class_ids: Sequence[int], label: str) -> None:
    """Shows a link to a new task of these classes; nothing if no method can classify it."""
    if dataset.has_features and 2 <= len(class_ids) <= custom_task.MAX_CLASSES:
        query = {custom_task.TASK_OF.name: custom_task.classes_text(dataset, [int(c) for c in class_ids])}
        shell.page_link("edit_task", label, shell.link(dataset, **query))
