"""Tasks of a compared method, listed with their images below a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.ui.parts import (
    drilldown,
    recorded,
    shell,
)
from fsviz.ui.parts.shell import escape

MAX_LISTED = 60  # tasks of a point


def dataset_of(line: run_comparison.MethodRun, any_task: bool = True) -> Dataset | None:
    """The dataset of a line whose single tasks can be shown; None, with the reason on the page, if they cannot."""
    if not any_task or line.tasks is None:
        st.caption("Images of single tasks are not available: the run is damaged, or no task is finished yet.")
        return None
    try:
        return shell.load_dataset(line.dataset)
    except FsvizError as error:
        st.caption(f"No images: {escape(str(error))}")
        return None


def list_tasks_of_quarter(main: Sequence[run_comparison.MethodRun], cell: str) -> None:
    """Tasks of a quarter, hardest for a method first."""
    name, _, quarter = cell.rpartition("@Q")
    line = run_comparison.by_name(main)[name]
    drilldown.heading(f"Tasks of Q{escape(quarter)}, hardest for {escape(name)} first", "rank_of")
    list_tasks(line, run_comparison.tasks_of_quarter(line, int(quarter)), cell, "rank_task")


def list_largest_differences(main: Sequence[run_comparison.MethodRun], reference: str, method: str) -> None:
    """The tasks on which two methods differ most."""
    runs_by_name = run_comparison.by_name(main)
    line, best = runs_by_name[method], runs_by_name[reference]
    difference = line.accuracy - best.accuracy
    order = np.argsort(-np.abs(np.nan_to_num(difference)), kind="stable")
    drilldown.heading(f"Largest differences, {escape(method)} vs {escape(reference)}", "differs")
    notes = {
        int(t): f"{100 * line.accuracy[t]:.0f}% {method}, {100 * best.accuracy[t]:.0f}% {reference}" for t in order
    }
    list_tasks(line, order, method, "differs_task", notes)


def list_tasks(
    line: run_comparison.MethodRun, order: np.ndarray, about: str, name: str, notes: Mapping[int, str] | None = None
) -> None:
    """Tasks of a line in this order with their images; `name` is the key of the selected one in the link."""
    order = order[np.isfinite(line.accuracy[order])]
    dataset = dataset_of(line)
    if dataset is None or line.tasks is None:
        return
    notes = notes or {int(t): f"{100 * line.accuracy[t]:.0f}% correct" for t in order}
    task_id_of = partial(recorded.task_id, dataset, line)
    drilldown.tasks(
        dataset, line.tasks, order[:MAX_LISTED], notes, f"{line.digest} {about}", name, task_id_of=task_id_of
    )
