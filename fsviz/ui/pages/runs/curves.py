"""Accuracy against a measure of the tasks, and the tasks around a point that is clicked."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.figures import runs as figures
from fsviz.records import PAD, Dataset
from fsviz.reports import html as report
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.settings import RawSettings, Setting
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.text import drawn
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
from fsviz.ui.parts.image_wall import Row, Tile, strip_uri, task_rows
from fsviz.ui.parts.shell import plain

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


@dataclass(frozen=True)
class PageExports:
    """What the page shows above its tables, as the report shows it too: the figure with its heading and caption, the
    correlations, and these as text with a caption."""

    figure: tuple[str, Figure, str] | None = None
    correlations: pd.DataFrame = field(default_factory=pd.DataFrame)
    told: pd.DataFrame | None = None
    correlated: str = ""


def show_curves(
    lines: list[run_comparison.MethodRun],
    main: list[run_comparison.MethodRun],
    here: pd.DataFrame,
    recipe: RawSettings,
    over: str,
) -> PageExports:
    """Accuracy against a measure of the tasks, and how closely the two go together."""
    known = run_comparison.measures_of(main)
    if not known:
        st.subheader("Accuracy", anchor=False)
        chosen = drilldown.chart(
            "Accuracy",
            figures.plot_accuracies(
                here["name"],
                here["accuracy"],
                here["ci95"],
                top5=here["top5"] if (here["n_way"] >= tables.TOP5_FROM).any() else None,
            ),
            key="bars",
            name="bar_of",
            of=lambda point: str(drilldown.data(point, 1) or ""),
            known=here["name"].tolist(),
            about=main[0].digest,
        )
        st.caption(
            plain(run_comparison.no_curve_reason(main)) + " Mean accuracies, with 95% intervals "
            f"{run_comparison.OVER[over]}. Click a point for the tasks of its method."
        )
        if chosen:
            drilldown.heading(f"Tasks of {plain(chosen)}, the hardest first", "bar_of")
            line = run_comparison.by_name(main)[chosen]
            list_tasks(line, np.argsort(line.accuracy, kind="stable"), chosen, "bar_task")
        return PageExports()
    picked, share = _curve_settings(known)
    title = measures.title(picked).lower()
    heading = f"Accuracy against {measures.axis(picked)}"
    st.subheader(plain(heading), anchor=False)
    window = run_comparison.window_of(main, share)
    curves = recorded.curves(main, picked, window, over)
    values = main[0].measures[picked]
    edges = np.quantile(values[np.isfinite(values)], [0, 0.25, 0.5, 0.75, 1])
    points = run_comparison.single_tasks(main[0], picked) if len(main) == 1 else None
    band, at = _pick_band(list(curves), main, picked)
    figure = figures.plot_accuracy_by_measure(
        curves, points, list(pairwise(edges)), measures.axis(picked), title, banded=band, at=at
    )
    st.session_state["_curves"] = {drawn(name): name for name in curves}
    export.chart("Accuracy against a measure", figure, key=CURVES, on_select=_curve_clicked, selection_mode="points")
    others = len(lines) - len(main)
    caption = (
        f"Rolling mean over {window:,} of {int(main[0].done.sum()):,} tasks sorted by {title}"
        + f", with the 95% band of {band} over {over}."
        + " Rest on a line for its interval, click it for the tasks around."
        + " Dotted lines cut the tasks into quarters. After figure 5 of Bennequin et al. (2022), which takes 200 of "
        "5,000 tasks."
        + (f" {others} more lines are of other tasks and not drawn here." if others else "")
        + f" {draw.explain(picked, recipe)}"
    )
    st.caption(plain(caption))
    if at is not None:
        _around(main, picked, at, band)
    correlations = recorded.correlations(main, picked, over)
    told, correlated = run_report.correlated(correlations, title)
    st.html(report.plain_table(told, report.CORRELATION_TITLES, {}))
    st.caption(plain(correlated))
    if picked == run_comparison.QUARTERS and recipe.get("distance") != "features":
        ends = correlations[["name", "spearman", "spearman_low", "spearman_high"]].itertuples(index=False)
        found = {name: {"value": value, "ci95": (low, high)} for name, value, low, high in ends}
        if little := evaluate.no_coarsity_effect(found, how="“Distance between classes” on the page Sample tasks"):
            st.info(plain(little), icon="🧭")
            correlated = f"{correlated} {little}"
    return PageExports((heading, figure, caption), correlations, told, correlated)


def _pick_band(names: list[str], main: list[run_comparison.MethodRun], measure: str) -> tuple[str, float | None]:
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


def _curve_clicked() -> None:
    points = st.session_state[CURVES].selection.points
    if not points or "x" not in points[0]:
        return
    known: dict[str, str] = st.session_state.get("_curves", {})
    data = points[0].get("customdata")
    name = known.get(str(data[1])) if isinstance(data, list | tuple) and len(data) == 2 else None
    at, task = f"{float(points[0]['x']):.4g}", data if isinstance(data, int) else -1
    same_line = name is None or len(known) == 1 or name == st.session_state.get("band")
    if same_line and (at, task) == (st.session_state.get(NEAR.name), st.session_state.get(TASK.name)):  # clicked again
        return _clear_selection()
    if name is not None and len(known) > 1:
        st.session_state["band"] = name
    st.session_state[NEAR.name], st.session_state[TASK.name] = at, task


def _clear_selection() -> None:
    st.session_state[NEAR.name] = ""
    st.session_state[TASK.name] = -1


def _around(main: list[run_comparison.MethodRun], measure: str, at: float, band: str) -> None:
    """The tasks around a value of the measure with their images, and one of them in full."""
    named = run_comparison.by_name(main)
    line = named[band]
    near = run_comparison.nearest_tasks(line, measure, at)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Tasks around {plain(measures.title(measure).lower())} {at:.4g}**")
        st.button("Close", key="forget_place", on_click=_clear_selection)
    dataset = dataset_of(line, bool(len(near)))
    if dataset is None or line.tasks is None:
        return
    names = dataset.classes["class_name"].astype(str)
    rows = pd.DataFrame({"task": near, measures.title(measure): line.measures[measure][near]})
    if dataset.has_pixels:
        rows["images"] = [strip_uri(dataset, run_report.faces(line.tasks.support[t], 5), STRIP_PX) for t in near]
    for name, other in list(named.items())[:6]:
        rows[name] = 100 * other.accuracy[near]
    rows["classes"] = [", ".join(names.reindex(ids[ids != PAD]).fillna("?")) for ids in line.tasks.class_ids[near]]
    st.session_state["_listed"] = near.tolist()
    tall = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        "Tasks around",
        rows,
        key="around_table",
        on_select=_task_chosen,
        selection_mode="single-row",
        hide_index=True,
        row_height=tall,
        height=40 + tall * min(5, len(rows)),
        column_config={
            "task": st.column_config.NumberColumn("Task", width=60),
            measures.title(measure): st.column_config.NumberColumn(format="%.1f", width=80),
            "images": st.column_config.ImageColumn("Support", width=5 * (STRIP_PX + 4)),
            **{
                name: st.column_config.ProgressColumn(f"{name} (%)", min_value=0, max_value=100, format="%.0f")
                for name in list(named)[:6]
            },
            "classes": st.column_config.TextColumn("Classes", width=320),
        },
    )
    st.caption(f"The {len(near):,} tasks nearest to it, those that {plain(band)} finds hardest first. Choose one.")
    task = int(links.value_of(TASK.with_(high=len(line.tasks) - 1), TASK.name, line.digest))
    _show_task(dataset, line, int(near[0]) if task < 0 else task, band)


def _task_chosen() -> None:
    listed: list[int] = st.session_state.get("_listed", [])
    rows = [row for row in st.session_state["around_table"].selection.rows if row < len(listed)]
    if rows:
        st.session_state[TASK.name] = int(listed[rows[0]])


def _show_task(dataset: Dataset, line: run_comparison.MethodRun, task: int, who: str) -> None:
    """Support and query images of one task, and what a method said of every query."""
    try:
        answer, tasks = recorded.predictions_of(line)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {plain(str(error))}")
        return
    if task >= len(tasks):
        st.caption(f"Only the first {len(tasks):,} tasks can be looked at one by one.")
        return
    names = dataset.classes["class_name"].astype(str).reindex(tasks.class_ids[task]).fillna("?").tolist()
    accuracy = 100 * float(line.accuracy[task])
    st.markdown(f"**Task {task:,}** · {accuracy:.0f}% of queries right with {plain(who)}")
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


def _curve_settings(known: list[str]) -> tuple[str, int]:
    """The measure of the tasks to draw against, and the share of the tasks (percent) in a rolling window."""
    picked = known[0]
    if len(known) > 1:
        setting = controls.MEASURE.with_(
            title="Accuracy against", choices={name: measures.title(name) for name in known}, default=picked
        )
        picked = controls.pick(setting, shell.side())
    return picked, controls.pick(WINDOW, shell.side(), as_slider=True)
