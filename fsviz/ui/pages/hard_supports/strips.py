"""The hard and the easy support of one task as two strips of images, next to the histogram."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.difficulty.objectives import OBJECTIVES, SUPPORT_SETS
from fsviz.records import PAD, Dataset
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import distribution, task_table
from fsviz.ui.parts import page_links
from fsviz.ui.parts.image_wall import Tile, gallery

MAX_CLASSES = 5
IMAGES_PER_CLASS = 2
TILE_PX = 68


def show(dataset: Dataset, sets: SupportSets) -> None:
    """Shows the selected task, or the hardest one of the selected bar or of all."""
    selected = task_table.selected_task(sets)
    in_bar = np.flatnonzero(distribution.tasks_of_bar(sets))
    if selected is None and not len(in_bar):
        st.caption("No tasks in this bar.")
        return
    task = int(study.hardest_first(sets, in_bar)[0]) if selected is None else selected
    hardest = ", the hardest of this bar" if len(in_bar) < len(sets) else ", the hardest"
    st.markdown(f"**Task {task:,}{hardest * (selected is None)}** · random {100 * sets.accuracy('random')[task]:.0f}%")
    for name in OBJECTIVES:
        st.markdown(f"{SUPPORT_SETS[name].title} support: **{100 * sets.accuracy(name)[task]:.0f}% correct**")
        clicked = gallery(dataset, _tiles(dataset, sets, task, name), f"strip_{name}", tile_px=TILE_PX)
        page_links.to_gallery(dataset, clicked)


def _tiles(dataset: Dataset, sets: SupportSets, task: int, name: str) -> list[Tile]:
    """The first support images of each class, those of different classes side by side; captions name the classes."""
    tasks = sets.tasks[name]
    ways = np.flatnonzero(tasks.class_ids[task] != PAD)[:MAX_CLASSES]
    names = dataset.distinct_names(tasks.class_ids[task, ways])
    return [
        Tile(int(image_id), class_name if shot == 0 else "")
        for shot in range(min(IMAGES_PER_CLASS, tasks.support.shape[2]))
        for way, class_name in zip(ways, names, strict=True)
        if (image_id := tasks.support[task, way, shot]) != PAD
    ]
