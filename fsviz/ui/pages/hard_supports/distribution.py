"""Distribution of task accuracies; a click on one of its points lists the tasks of its bar."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.figures import support_sets as figures
from fsviz.settings import Setting
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table
from fsviz.ui.parts import export, links
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.shell import escape

CHART = "distribution"
BAR = Setting("accuracy_bar", "Bar", "The bar whose tasks are listed: its support set and position.", "choice", "")
N_BINS = 20


def draw(sets: SupportSets, numbers: study.SupportSummary) -> None:
    bar = selected_bar(sets)
    export.chart(
        "Accuracy with hard, random and easy supports",
        figures.plot_distribution(numbers["histogram"], numbers["accuracy"], numbers["ci95"], selected=bar),
        key=CHART,
        sets=Click(BAR, _bar, also={task_table.TASK.name: task_table.TASK.default, "show": "Tasks"}, toggles=(BAR,)),
    )


def so_far(summary: study.SupportSummary) -> None:
    """The distribution over the finished tasks of a run."""
    figure = figures.plot_distribution(summary["histogram"], summary["accuracy"], summary["ci95"], 260)
    export.chart("Accuracy so far", figure, key="so_far")
    st.caption(f"{summary['n_tasks']:,} finished tasks.")


def correlation(sets: SupportSets, before: str) -> str:
    """The rank correlation of accuracy with low query loss, after the text `before`; "" if there is none."""
    numbers = cached_call(study.summary, sets)
    value, interval, over = (
        numbers["spearman_loss_accuracy"],
        numbers["spearman_ci95"],
        numbers["spearman_over"],
    )
    if value is None or interval is None or over is None:
        return ""
    return f"{before}{escape(study.describe_correlation(value, interval, over))}."


def selected_bar(sets: SupportSets) -> tuple[str, int] | None:
    """The support set and the position of the selected bar; None without a selection."""
    every = {f"{name}-{i}": f"{name}-{i}" for name in study.SETS for i in range(N_BINS)}
    value = str(links.value_of(BAR.with_(choices={"": "all tasks", **every}), BAR.name, task_table.about(sets)))
    name, _, position = value.partition("-")
    return (name, int(position)) if value else None


def tasks_of_bar(sets: SupportSets) -> np.ndarray:
    """(T,) whether each task is in the selected bar; all tasks if no bar is selected."""
    bar = selected_bar(sets)
    if bar is None:
        return np.ones(len(sets), dtype=bool)
    name, position = bar
    return study.bin_of(sets, name, _edges(sets)) == position


def show_bar(sets: SupportSets) -> None:
    """Shows the selected bar, with a button to show all tasks; nothing if no bar is selected."""
    bar = selected_bar(sets)
    if bar is None:
        return
    edges, (name, position) = _edges(sets), bar
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Accuracy {edges[position]:.0f} to {edges[position + 1]:.0f}% with **{escape(name)}** supports.")
        st.button("Show all tasks", key="all_bars", on_click=_clear)


def _edges(sets: SupportSets) -> np.ndarray:
    return np.asarray(cached_call(study.summary, sets)["histogram"]["edges"])


def _clear() -> None:
    st.session_state[BAR.name] = ""


def _bar(point: Point) -> str | None:
    """The bar of a point; other marks of the figure carry nothing."""
    return f"{point.at(0)}-{point.at(1)}" if len(point.data) == 2 else None
