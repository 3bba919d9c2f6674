"""One task of the scatter: its images, predictions and measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import title
from fsviz.records import PAD, Dataset
from fsviz.studies.prediction import measured
from fsviz.studies.prediction.measured import PredictionTasks
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.ui.parts import export, page_links
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape, responsive_columns

MAX_CLASSES, MAX_TILES = 10, 14

MEASURES = Table(
    "Measures of the task",
    Column("title", "Measure"),
    Column("value", "Value", kind="number"),
    Column("rank", "Rank", kind="count", help="Rank 1 = predicted easiest."),
)


def show(dataset: Dataset, tasks: PredictionTasks, task: int) -> None:
    outcome = escape(measured.outcome_name(tasks.spec))
    st.subheader(f"Task {task:,}: {100 * tasks.outcome[task]:.0f}% {outcome}", anchor=False)
    predictions = cached_call(measured.predict_task, tasks, task)
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has no images here: numbers identify them.")
    left, right = responsive_columns("task", [7, 3], gap="large")
    with left:
        clicked = task_rows(dataset, _rows(dataset, tasks, task, predictions), "prediction_task", tile_px=64)
        page_links.to_gallery(dataset, clicked if dataset.has_pixels else None)
        backbone = str(tasks.spec["backbone"])
        task_name = task_ids.name_task(dataset, tasks.tasks, task, tasks.spec, (backbone,))
        page_links.from_task(dataset, tasks.tasks, task, backbone, task_id=task_name)
        if tasks.spec["setting"] == "unsupervised":
            st.caption("Clusters are matched one-to-one to classes. ✗: image in another class's cluster.")
    with right:
        st.markdown("**Measures**")
        export.table(MEASURES, _measures(tasks, task))
        undefined = [name for name, values in tasks.measures.items() if not np.isfinite(values[task])]
        st.caption(
            "Rank 1 = predicted easiest. "
            + "".join(f"{escape(title(name))}: {escape(measured.undefined(name, tasks.spec))}. " for name in undefined)
            + (
                f"Mean confidence: {100 * tasks.expected[task]:.0f}%."
                if np.isfinite(tasks.expected[task]) and tasks.spec["setting"] == "semi"
                else ""
            )
        )


def _rows(dataset: Dataset, tasks: PredictionTasks, task: int, predictions: dict[str, np.ndarray]) -> list[Row]:
    """Support, then queries of every class, incorrect ones first."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids = tasks.tasks.class_ids[task]
    ways = np.flatnonzero(class_ids != PAD)[:MAX_CLASSES]
    rows = []
    for way in ways:
        images = tasks.tasks.support[task, way]
        tiles = [Tile(int(i)) for i in images[images != PAD][:MAX_TILES]]
        rows.append(Row(str(names[class_ids[way]]), tiles, kind="support"))
    for way in ways:
        queries, predicted = tasks.tasks.query[task, way], predictions["predicted"][way]
        positions = np.flatnonzero(queries != PAD)
        is_wrong = predicted[positions] != way
        tiles = [
            Tile(
                int(queries[i]),
                str(names[class_ids[predicted[i]]]) if predicted[i] != way else "",
                "wrong" if predicted[i] != way else "right",
            )
            for i in positions[np.argsort(~is_wrong, kind="stable")][:MAX_TILES]
        ]
        note = f"{int((~is_wrong).sum())} of {len(positions)} correct" + (
            ", incorrect first" if len(positions) > MAX_TILES else ""
        )
        rows.append(Row(str(names[class_ids[way]]), tiles, note, kind="query"))
    return rows


def _measures(tasks: PredictionTasks, task: int) -> list[dict[str, Any]]:
    """Every defined measure of a task, with its rank among all tasks."""
    return [
        {"title": title(name), "value": values[task], "rank": measured.ease_rank(tasks, name)[task]}
        for name, values in tasks.measures.items()
        if np.isfinite(values[task])
    ]
