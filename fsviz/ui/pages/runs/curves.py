"""Accuracy by a measure of the tasks, and the tasks near a point that is clicked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.figures import runs as figures
from fsviz.records import PAD, Dataset
from fsviz.reports import runs as run_report
from fsviz.reports.tables import CORRELATIONS
from fsviz.settings import RawSettings, Setting
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.ui.pages.runs.settings import BAND, Settings
from fsviz.ui.pages.runs.tasks import dataset_of
from fsviz.ui.parts import (
    export,
    links,
    page_links,
    recorded,
    task_list,
)
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.image_wall import Row, Tile, strip_uri, task_rows
from fsviz.ui.parts.shell import escape

NEAR = Setting("near", "Tasks near", "A value of the measure: the tasks nearest to it are listed.", "text", "")
TASK = task_list.TASK.with_(kind="int", default=-1, low=-1)  # -1 is the first of the list
STRIP_PX = 38
MAX_METHODS = 6  # with a column in the list of tasks


class Curves(NamedTuple):
    """Accuracy by a measure: the figure, its caption in lower case, its tooltip, its click, and the measure."""

    figure: Any
    caption: str
    help: str
    click: Click
    measure: str


def plot_curves(
    comparison: run_comparison.RunComparison, settings: Settings, recipe: RawSettings, height: int
) -> Curves:
    """Rolling means of accuracy by a measure of the tasks, with the band of the highlighted method."""
    main, over, measure = comparison.main, comparison.over, settings.measure
    title = measures.lower_title(measure)
    window = run_comparison.window_of(main, settings.window)
    curves = recorded.curves(main, measure, window, over)
    values = main[0].measures[measure]
    edges = np.quantile(values[np.isfinite(values)], [0, 0.25, 0.5, 0.75, 1])
    points = run_comparison.single_tasks(main[0], measure) if len(main) == 1 else None
    figure = figures.plot_accuracy_by_measure(
        curves, points, list(pairwise(edges)), title, title, height, settings.method, _near(main, measure)
    )
    methods = BAND.with_(choices={name: name for name in curves})
    click = Click((methods, NEAR, TASK), partial(_at_point, len(curves) > 1), toggles=(NEAR, TASK))
    n_tasks = int(main[0].done.sum())
    caption = f"rolling mean over {window:,} of {n_tasks:,} tasks, 95% band for {settings.method} over {over}."
    help = f"Dotted lines separate quarters of the tasks, Q1 to Q4. {draw.explain(measure, recipe)}"
    return Curves(figure, caption, help, click, measure)


def show_correlations(
    comparison: run_comparison.RunComparison, curves: Curves, recipe: RawSettings
) -> run_report.MeasureSection:
    """The correlation of the measure with accuracy; returns the section of a report about the measure."""
    title = measures.lower_title(curves.measure)
    st.subheader(f"Correlation of {escape(title)} with accuracy", anchor=False)
    correlations = recorded.correlations(comparison.main, curves.measure, comparison.over)
    caption = run_report.describe_correlations(correlations, title)
    export.table(CORRELATIONS.without("over"), correlations)
    st.caption(escape(caption))
    if note := _no_effect_note(curves.measure, recipe, correlations):
        st.info(escape(note), icon="🧭")
        caption = f"{caption} {note}"
    figure = (f"Accuracy by {title}", curves.figure, f"R{curves.caption[1:]} {curves.help}")
    return run_report.MeasureSection(figure, correlations, caption)


def _no_effect_note(measure: str, recipe: RawSettings, correlations: pd.DataFrame) -> str:
    """A sentence if coarsity does not predict the accuracy of these tasks, "" otherwise."""
    if measure != run_comparison.QUARTERS or recipe.get("distance") == "features":
        return ""
    ends = correlations[["name", "spearman", "spearman_low", "spearman_high"]].itertuples(index=False)
    by_method = {name: {"value": value, "ci95": (low, high)} for name, value, low, high in ends}
    return run_comparison.no_coarsity_effect(by_method, how="“Distance between classes” on the page Sample tasks")


def _near(main: Sequence[run_comparison.MethodRun], measure: str) -> float | None:
    """The value of the measure near which tasks are listed, None for none."""
    try:
        value = float(links.value_of(NEAR, NEAR.name, f"{main[0].digest} {measure}"))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _at_point(several: bool, point: Point) -> tuple[str | None, str, int] | None:
    """The method of a point if there are several, the value of the measure, and the task; -1 is the first there."""
    if point.x is None:
        return None
    line, task = (point.at(1), -1) if len(point.data) == 2 else (None, point.at(0))
    return line if several else None, f"{float(point.x):.4g}", task if isinstance(task, int) else -1


def _clear_selection() -> None:
    st.session_state[NEAR.name] = ""
    st.session_state[TASK.name] = -1


def list_tasks_near(main: Sequence[run_comparison.MethodRun], measure: str, method: str) -> None:
    """Tasks near the clicked value of the measure, hardest for a method first, and one of them in full."""
    at = _near(main, measure)
    if at is None:
        return
    runs_by_name = run_comparison.by_name(main)
    line = runs_by_name[method]
    near = run_comparison.nearest_tasks(line, measure, at)
    with st.container(horizontal=True, vertical_alignment="center"):
        title = escape(measures.lower_title(measure))
        st.markdown(f"**{len(near):,} tasks near {title} {at:.4g}, hardest for {escape(method)} first**")
        st.button("Close", key="forget_place", on_click=_clear_selection)
    dataset = dataset_of(line, bool(len(near)))
    if dataset is None or line.tasks is None:
        return
    names = dataset.classes["class_name"].astype(str)
    rows = pd.DataFrame({"task": near, measure: line.measures[measure][near]})
    if dataset.has_pixels:
        rows["images"] = [strip_uri(dataset, run_report.faces(line.tasks.support[t], 5), STRIP_PX) for t in near]
    listed = list(runs_by_name)[:MAX_METHODS]
    for which, name in enumerate(listed):
        rows[f"method_{which}"] = 100 * runs_by_name[name].accuracy[near]
    rows["classes"] = [names.reindex(ids[ids != PAD]).fillna("?").tolist() for ids in line.tasks.class_ids[near]]
    tall = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        _task_table(measure, listed),
        rows,
        key="around_table",
        sets=Click(TASK, near.tolist()),
        row_height=tall,
        height=40 + tall * min(4, len(rows)),
    )
    task = int(links.value_of(TASK.with_(high=len(line.tasks) - 1), TASK.name, line.digest))
    _show_task(dataset, line, int(near[0]) if task < 0 else task, method)


def _task_table(measure: str, methods: Sequence[str]) -> Table:
    """Tasks with a measure and the accuracy of every method."""
    accuracies = (Column(f"method_{which}", name, "%", 0, kind="bar", high=100) for which, name in enumerate(methods))
    return Table(
        "Tasks near a value of the measure",
        Column("task", "Task", kind="count", width=60),
        measures.column(measure),
        Column("images", "Support", kind="image", width=5 * (STRIP_PX + 4)),
        *accuracies,
        Column("classes", "Classes", kind="class", width=320),
    )


def _show_task(dataset: Dataset, line: run_comparison.MethodRun, task: int, method: str) -> None:
    """Support and query images of one task, with the predictions of a method."""
    try:
        predictions, tasks = recorded.predictions_of(line)
    except FsvizError as error:
        st.caption(f"No images: {escape(str(error))}")
        return
    if task >= len(tasks):
        st.caption(f"Images are available for the first {len(tasks):,} tasks only.")
        return
    names = dataset.classes["class_name"].astype(str).reindex(tasks.class_ids[task]).fillna("?").tolist()
    accuracy = 100 * float(line.accuracy[task])
    st.markdown(f"**Task {task:,}**: {accuracy:.0f}% correct ({escape(method)})")
    rows = []
    for way in np.flatnonzero(tasks.class_ids[task] != PAD)[: run_report.MAX_CLASSES]:
        support, query = tasks.support[task, way], tasks.query[task, way]
        rows.append(Row(names[way], [Tile(int(i)) for i in support[support != PAD][:20]], kind="support"))
        tiles = []
        for image_id, predicted in zip(query, predictions.predicted[task, way]):
            if image_id != PAD:
                is_wrong = int(predicted) != way
                tiles.append(
                    Tile(int(image_id), names[predicted] if is_wrong else "", "wrong" if is_wrong else "right")
                )
        rows.append(Row(names[way], tiles, kind="query"))
    page_links.to_gallery(dataset, task_rows(dataset, rows, "run_task", tile_px=64) if dataset.has_pixels else None)
    task_id = recorded.task_id(dataset, line, task)
    page_links.from_task(dataset, tasks, task, line.backbone, line.method, task_id=task_id)
