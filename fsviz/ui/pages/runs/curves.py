"""Accuracy against a measure of the tasks, and the tasks around a point that is clicked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.figures import runs as figures
from fsviz.records import PAD, Dataset
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.reports.tables import CORRELATIONS
from fsviz.settings import RawSettings, Setting
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.ui.pages.runs.tasks import dataset_of, list_tasks
from fsviz.ui.parts import (
    controls,
    drilldown,
    export,
    links,
    page_links,
    recorded,
    shell,
    task_list,
)
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.image_wall import Row, Tile, strip_uri, task_rows
from fsviz.ui.parts.shell import escape

WINDOW = Setting(
    "window",
    "Rolling window (% of the tasks)",
    "How many neighbouring tasks a point of a curve is the mean of. Wider is smoother, and hides more.",
    "int",
    10,
    1,
    50,
)
BAND = Setting(
    "band",
    "Method to look at",
    "Its 95% band is drawn, and the tasks that are listed are ordered by its accuracy. A click on a line chooses too.",
    "choice",
    "",
)
NEAR = Setting("near", "Tasks around", "A value of the measure: the tasks nearest to it are listed.", "text", "")
TASK = task_list.TASK.with_(kind="int", default=-1, low=-1)  # -1 is the first of the list
CURVES = "curves"
STRIP_PX = 38
MOST_METHODS = 6  # with a column in the list of tasks


def show_curves(comparison: run_comparison.RunComparison, recipe: RawSettings) -> run_report.MeasureSection:
    """Accuracy against a measure of the tasks, and their correlation; bars if the tasks have no measure."""
    main, over = comparison.main, comparison.over
    names = run_comparison.measures_of(main)
    if not names:
        _show_bars(comparison)
        return run_report.MeasureSection()
    measure, share = _curve_settings(names)
    title = measures.lower_title(measure)
    heading = f"Accuracy against {measures.lower_title(measure)}"
    st.subheader(escape(heading), anchor=False)
    window = run_comparison.window_of(main, share)
    curves = recorded.curves(main, measure, window, over)
    values = main[0].measures[measure]
    edges = np.quantile(values[np.isfinite(values)], [0, 0.25, 0.5, 0.75, 1])
    points = run_comparison.single_tasks(main[0], measure) if len(main) == 1 else None
    band, at = _pick_band(list(curves), main, measure)
    figure = figures.plot_accuracy_by_measure(
        curves, points, list(pairwise(edges)), measures.lower_title(measure), title, banded=band, at=at
    )
    methods = BAND.with_(choices={name: name for name in curves})
    sets = Click((methods, NEAR, TASK), partial(_at_point, len(curves) > 1), toggles=(NEAR, TASK))
    export.chart("Accuracy against a measure", figure, key=CURVES, sets=sets)
    n_others = len(comparison.runs) - len(main)
    caption = (
        f"Rolling mean over {window:,} of {int(main[0].done.sum()):,} tasks sorted by {title}"
        + f", with the 95% band of {band} over {over}."
        + " Rest on a line for its interval, click it for the tasks around."
        + " Dotted lines cut the tasks into quarters. After figure 5 of Bennequin et al. (2022), which takes 200 of "
        "5,000 tasks."
        + (f" {n_others} more lines are of other tasks and not drawn here." if n_others else "")
        + f" {draw.explain(measure, recipe)}"
    )
    st.caption(escape(caption))
    if at is not None:
        _around(main, measure, at, band)
    correlations = recorded.correlations(main, measure, over)
    correlated = run_report.describe_correlations(correlations, title)
    export.table(CORRELATIONS.without("over"), correlations)
    st.caption(escape(correlated))
    if note := _no_effect_note(measure, recipe, correlations):
        st.info(escape(note), icon="🧭")
        correlated = f"{correlated} {note}"
    return run_report.MeasureSection((heading, figure, caption), correlations, correlated)


def _show_bars(comparison: run_comparison.RunComparison) -> None:
    """Mean accuracies, and the tasks of the method that is clicked."""
    main, rows = comparison.main, comparison.main_table
    st.subheader("Accuracy", anchor=False)
    chosen = drilldown.chart(
        "Accuracy",
        figures.plot_accuracies(
            rows["name"],
            rows["accuracy"],
            rows["ci95"],
            top5=rows["top5"] if (rows["n_way"] >= tables.TOP5_FROM).any() else None,
        ),
        key="bars",
        name="bar_of",
        texts=rows["name"].tolist(),
        place=1,
        about=main[0].digest,
    )
    st.caption(
        escape(run_comparison.no_curve_reason(main)) + " Mean accuracies, with 95% intervals "
        f"{run_comparison.CI_UNITS[comparison.over]}. Click a point for the tasks of its method."
    )
    if chosen:
        drilldown.heading(f"Tasks of {escape(chosen)}, the hardest first", "bar_of")
        run = run_comparison.by_name(main)[chosen]
        list_tasks(run, np.argsort(run.accuracy, kind="stable"), chosen, "bar_task")


def _no_effect_note(measure: str, recipe: RawSettings, correlations: pd.DataFrame) -> str:
    """A sentence if coarsity does not predict the accuracy of these tasks, "" otherwise."""
    if measure != run_comparison.QUARTERS or recipe.get("distance") == "features":
        return ""
    ends = correlations[["name", "spearman", "spearman_low", "spearman_high"]].itertuples(index=False)
    by_method = {name: {"value": value, "ci95": (low, high)} for name, value, low, high in ends}
    return run_comparison.no_coarsity_effect(by_method, how="“Distance between classes” on the page Sample tasks")


def _pick_band(names: list[str], main: Sequence[run_comparison.MethodRun], measure: str) -> tuple[str, float | None]:
    """The method whose band is drawn, and the value of the measure around which tasks are listed, None for none."""
    about = f"{main[0].digest} {measure}"
    band = names[0]
    if len(names) > 1:
        band = controls.pick(
            BAND.with_(choices={name: name for name in names}, default=band), shell.side(), about=about
        )
    try:
        at = float(links.value_of(NEAR, NEAR.name, about))
    except ValueError:
        return band, None
    return band, at if np.isfinite(at) else None


def _at_point(several: bool, point: Point) -> tuple[str | None, str, int] | None:
    """The line of a point if there are several, the value of the measure, and the task; -1 is the first one there."""
    if point.x is None:
        return None
    line, task = (point.at(1), -1) if len(point.data) == 2 else (None, point.at(0))
    return line if several else None, f"{float(point.x):.4g}", task if isinstance(task, int) else -1


def _clear_selection() -> None:
    st.session_state[NEAR.name] = ""
    st.session_state[TASK.name] = -1


def _around(main: Sequence[run_comparison.MethodRun], measure: str, at: float, band: str) -> None:
    """The tasks around a value of the measure with their images, and one of them in full."""
    named = run_comparison.by_name(main)
    line = named[band]
    near = run_comparison.nearest_tasks(line, measure, at)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Tasks around {escape(measures.lower_title(measure))} {at:.4g}**")
        st.button("Close", key="forget_place", on_click=_clear_selection)
    dataset = dataset_of(line, bool(len(near)))
    if dataset is None or line.tasks is None:
        return
    names = dataset.classes["class_name"].astype(str)
    rows = pd.DataFrame({"task": near, measure: line.measures[measure][near]})
    if dataset.has_pixels:
        rows["images"] = [strip_uri(dataset, run_report.faces(line.tasks.support[t], 5), STRIP_PX) for t in near]
    listed = list(named)[:MOST_METHODS]
    for which, name in enumerate(listed):
        rows[f"method_{which}"] = 100 * named[name].accuracy[near]
    rows["classes"] = [", ".join(names.reindex(ids[ids != PAD]).fillna("?")) for ids in line.tasks.class_ids[near]]
    tall = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        _task_table(measure, listed),
        rows,
        key="around_table",
        sets=Click(TASK, near.tolist()),
        row_height=tall,
        height=40 + tall * min(5, len(rows)),
    )
    st.caption(f"The {len(near):,} tasks nearest to it, those that {escape(band)} finds hardest first. Choose one.")
    task = int(links.value_of(TASK.with_(high=len(line.tasks) - 1), TASK.name, line.digest))
    _show_task(dataset, line, int(near[0]) if task < 0 else task, band)


def _task_table(measure: str, methods: Sequence[str]) -> Table:
    """Tasks with a measure and the accuracy of every method."""
    accuracies = (Column(f"method_{which}", name, "%", 0, kind="bar", high=100) for which, name in enumerate(methods))
    return Table(
        "Tasks around",
        Column("task", "Task", kind="count", width=60),
        measures.column(measure),
        Column("images", "Support", kind="image", width=5 * (STRIP_PX + 4)),
        *accuracies,
        Column("classes", "Classes", width=320),
    )


def _show_task(dataset: Dataset, line: run_comparison.MethodRun, task: int, who: str) -> None:
    """Support and query images of one task, and what a method said of every query."""
    try:
        answer, tasks = recorded.predictions_of(line)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {escape(str(error))}")
        return
    if task >= len(tasks):
        st.caption(f"Only the first {len(tasks):,} tasks can be looked at one by one.")
        return
    names = dataset.classes["class_name"].astype(str).reindex(tasks.class_ids[task]).fillna("?").tolist()
    accuracy = 100 * float(line.accuracy[task])
    st.markdown(f"**Task {task:,}** · {accuracy:.0f}% of queries right with {escape(who)}")
    rows = []
    for way in np.flatnonzero(tasks.class_ids[task] != PAD)[: run_report.MOST_CLASSES]:
        support, query = tasks.support[task, way], tasks.query[task, way]
        rows.append(Row(names[way], [Tile(int(i)) for i in support[support != PAD][:20]], kind="support"))
        tiles = []
        for image_id, said in zip(query, answer.predicted[task, way]):
            if image_id != PAD:
                wrong = int(said) != way
                tiles.append(Tile(int(image_id), names[said] if wrong else "", "wrong" if wrong else "right"))
        rows.append(Row(names[way], tiles, kind="query"))
    page_links.to_gallery(dataset, task_rows(dataset, rows, "run_task", tile_px=64) if dataset.has_pixels else None)
    named = recorded.task_id(dataset, line, task)
    page_links.from_task(dataset, tasks, task, line.backbone, line.method, named=named)


def _curve_settings(names: list[str]) -> tuple[str, int]:
    """The measure of the tasks to draw against, and the share of the tasks (percent) in a rolling window."""
    picked = names[0]
    if len(names) > 1:
        setting = controls.MEASURE.with_(
            title="Accuracy against", choices={name: measures.title(name) for name in names}, default=picked
        )
        picked = controls.pick(setting, shell.side())
    return picked, controls.pick(WINDOW, shell.side(), as_slider=True)
