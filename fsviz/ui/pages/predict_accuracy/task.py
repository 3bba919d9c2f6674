"""One task of the scatter: its images, what was said of its queries, and its measures beside those of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import title
from fsviz.records import PAD, Dataset
from fsviz.studies.prediction import measured
from fsviz.studies.prediction.measured import Measured
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.ui.parts import export, page_links
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape, responsive_columns

MOST_CLASSES, MOST_TILES = 10, 14

MEASURES = Table(
    "Measures of the task",
    Column("title", "Measure"),
    Column("value", "Value", kind="number"),
    Column("rank", "Rank", kind="count", help="1 is the task that the measure says is the easiest."),
)


def show(dataset: Dataset, found: Measured, task: int) -> None:
    what = escape(measured.outcome_name(found.spec))
    st.subheader(f"Task {task:,}: {100 * found.outcome[task]:.0f}% {what}", anchor=False)
    said = cached_call(measured.said_of, found, task)
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has no pixels here: images are named by their number.")
    left, right = responsive_columns("task", [7, 3], gap="large")
    with left:
        clicked = task_rows(dataset, _rows(dataset, found, task, said), "prediction_task", tile_px=64)
        page_links.to_gallery(dataset, clicked if dataset.has_pixels else None)
        backbone = str(found.spec["backbone"])
        named = task_ids.name_task(dataset, found.tasks, task, found.spec, (backbone,))
        page_links.from_task(dataset, found.tasks, task, backbone, named=named)
        if found.spec["setting"] == "unsupervised":
            st.caption(
                "Every cluster has the name of the class that most of its images are of, each class used once. A "
                "cross marks an image in the cluster of another class."
            )
    with right:
        st.markdown("**What was known before**")
        export.table(MEASURES, _measures(found, task))
        unknown = [name for name, values in found.measures.items() if not np.isfinite(values[task])]
        st.caption(
            "Rank 1 is the task that a measure says is the easiest. "
            + "".join(f"{escape(title(name))}: {escape(measured.undefined(name, found.spec))}. " for name in unknown)
            + (
                f"The regression itself expects to be right for {100 * found.expected[task]:.0f}% of the queries."
                if np.isfinite(found.expected[task]) and found.spec["setting"] == "semi"
                else ""
            )
        )


def _rows(dataset: Dataset, found: Measured, task: int, said: dict[str, np.ndarray]) -> list[Row]:
    """Support, then queries of every class, the wrong ones first."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids = found.tasks.class_ids[task]
    ways = np.flatnonzero(class_ids != PAD)[:MOST_CLASSES]
    rows = []
    for way in ways:
        images = found.tasks.support[task, way]
        tiles = [Tile(int(i)) for i in images[images != PAD][:MOST_TILES]]
        rows.append(Row(str(names[class_ids[way]]), tiles, kind="support"))
    for way in ways:
        queries, predicted = found.tasks.query[task, way], said["predicted"][way]
        there = np.flatnonzero(queries != PAD)
        wrong = predicted[there] != way
        tiles = [
            Tile(
                int(queries[i]),
                str(names[class_ids[predicted[i]]]) if predicted[i] != way else "",
                "wrong" if predicted[i] != way else "right",
            )
            for i in there[np.argsort(~wrong, kind="stable")][:MOST_TILES]
        ]
        note = f"{int((~wrong).sum())} of {len(there)} right" + (", mistakes first" if len(there) > MOST_TILES else "")
        rows.append(Row(str(names[class_ids[way]]), tiles, note, kind="query"))
    return rows


def _measures(found: Measured, task: int) -> list[dict[str, Any]]:
    """Every measure that one task has, and its rank among all tasks from the easiest."""
    return [
        {"title": title(name), "value": values[task], "rank": measured.ease_rank(found, name)[task]}
        for name, values in found.measures.items()
        if np.isfinite(values[task])
    ]
