"""Links from what a page shows to the pages that say more: an image, a task, classes, the row of a table."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import custom_task
from fsviz.records import PAD, Dataset, TaskId, Tasks
from fsviz.tasks import draw, task_ids
from fsviz.ui.parts import selections, shell


def to_gallery(dataset: Dataset, clicked: int | None) -> None:
    """The way to an image that was clicked on a wall; nothing where none was."""
    if clicked is None:
        return
    st.session_state.pop("seen_dataset", None)  # the link names the image, not the last click there
    shell.page_link("images", "Open in Images", shell.link(dataset, image=str(clicked)))


def to_passport(dataset: Dataset, name: str, position: int, label: str = "All that is known of it") -> None:
    """The way to the passport of a task: `name` is its testbed's (see fsviz.tasks.task_ids)."""
    asked = {task_ids.TASK_NAME.name: f"{name}:{position}"}
    shell.page_link("task", label, shell.link(dataset, **asked))


def to_task(dataset: Dataset, tasks: Tasks, at: int, backbone: str, label: str, method: str = "protonet") -> None:
    """The way to the very task, where its support images can be swapped and every cause of it is told."""
    class_ids, support, query = tasks.class_ids[at], tasks.support[at], tasks.query[at]
    there = class_ids != PAD
    if there.sum() > custom_task.MAX_CLASSES:
        return
    asked = {
        custom_task.TASK_OF.name: custom_task.classes_text(dataset, class_ids[there].tolist()),
        "support": custom_task.images_text(support[there]),
        "query": custom_task.images_text(query[there]),
        "n_shot": str(support.shape[1]),
        "n_query": str(query.shape[1]),
        "backbone": backbone,
        "method": method,
    }
    shell.page_link("edit_task", label, shell.link(dataset, **asked))


def from_task(
    dataset: Dataset,
    tasks: Tasks,
    at: int,
    backbone: str = "",
    method: str = "protonet",
    support: str = "its",
    named: TaskId | None = None,
    on_map: bool = True,
) -> None:
    """Where a task that is shown leads: to all that is known of it, to where its support images can be swapped, and to
    its place on the map.

    support  whose support images, where several are shown
    named    what names it in links, where its testbed has a name (see fsviz.tasks.task_ids); else its images do
    on_map   whether the map is among the ways: it is not where it is shown already
    """
    if named is None and tasks.has_images:
        named = TaskId(task_ids.images_name(dataset, tasks, at), 0)
    selections.show(dataset, tasks, at, named)
    swappable = dataset.has_features and tasks.has_images
    swappable = swappable and (tasks.class_ids[at] != PAD).sum() <= custom_task.MAX_CLASSES
    with st.container(horizontal=True, gap="medium"):
        if named is not None:
            to_passport(dataset, named.testbed, named.position)
        if swappable:
            backbone = backbone or draw.default_backbone(dataset)
            to_task(dataset, tasks, at, backbone, f"Swap {support} support images", method)
            if on_map:
                to_map(dataset, tasks, at, backbone)


def to_map(dataset: Dataset, tasks: Tasks, at: int, backbone: str) -> None:
    """The way to the feature map with the very task on it."""
    there = tasks.class_ids[at] != PAD
    asked = {
        "testbed": custom_task.LINKED,
        "support": custom_task.images_text(tasks.support[at][there]),
        "query": custom_task.images_text(tasks.query[at][there]),
        "backbone": backbone,
    }
    shell.page_link("image_map", "See it on the map", shell.link(dataset, **asked))


def to_classes(dataset: Dataset, class_ids: Sequence[int], label: str) -> None:
    """The way to a task of these classes, to be put together by hand; nothing where no method could answer it."""
    if dataset.has_features and 2 <= len(class_ids) <= custom_task.MAX_CLASSES:
        asked = {custom_task.TASK_OF.name: custom_task.classes_text(dataset, [int(c) for c in class_ids])}
        shell.page_link("edit_task", label, shell.link(dataset, **asked))
