"""The distribution of accuracies: a click on one of its points lists the tasks behind it."""

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
BAR = Setting("accuracy_bar", "Bar", "The bar whose tasks are listed, by its set and its place.", "choice", "")
N_BINS = 20


def draw(found: SupportSets, numbers: study.Summary) -> None:
    bar = chosen(found)
    export.chart(
        "Accuracy with hard, random and easy supports",
        figures.plot_distribution(numbers["histogram"], numbers["accuracy"], numbers["ci95"], chosen=bar),
        key=CHART,
        sets=Click(BAR, _bar, also={task_table.TASK.name: task_table.TASK.default, "show": "Tasks"}, toggles=(BAR,)),
    )


def so_far(summary: study.Summary) -> None:
    """The distribution over the finished tasks of a run."""
    figure = figures.plot_distribution(summary["histogram"], summary["accuracy"], summary["ci95"], 260)
    export.chart("Accuracy so far", figure, key="so_far")
    st.caption(f"The {summary['n_tasks']:,} tasks finished so far.")


def correlation(found: SupportSets, before: str) -> str:
    """These words and the rank correlation of accuracy with low query loss; nothing where there is none."""
    numbers = cached_call(study.summary, found)
    value, interval, over = (
        numbers["spearman_loss_accuracy"],
        numbers["spearman_ci95"],
        numbers["spearman_over"],
    )
    if value is None or interval is None or over is None:
        return ""
    return f"{before}{escape(study.correlation_in_words(value, interval, over))}."


def chosen(found: SupportSets) -> tuple[str, int] | None:
    """The set and the place of the bar that was clicked, or that the link names."""
    every = {f"{name}-{i}": f"{name}-{i}" for name in study.SETS for i in range(N_BINS)}
    value = str(links.value_of(BAR.with_(choices={"": "all tasks", **every}), BAR.name, task_table.about(found)))
    name, _, place = value.partition("-")
    return (name, int(place)) if value else None


def keep(found: SupportSets) -> np.ndarray:
    """(T,) the tasks of the chosen bar, all where none is; says which, with a way back."""
    bar = chosen(found)
    if bar is None:
        return np.ones(len(found), dtype=bool)
    edges = np.asarray(cached_call(study.summary, found)["histogram"]["edges"])
    name, place = bar
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Tasks that reach {edges[place]:.0f} to {edges[place + 1]:.0f}% with **{escape(name)}** supports.")
        st.button("Show all tasks", key="all_bars", on_click=_forget)
    return study.bin_of(found, name, edges) == place


def _forget() -> None:
    st.session_state[BAR.name] = ""


def _bar(point: Point) -> str | None:
    """The bar that a point stands on; other marks of the figure carry nothing."""
    return f"{point.at(0)}-{point.at(1)}" if len(point.data) == 2 else None
