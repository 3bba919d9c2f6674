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

MOST_LISTED = 60  # tasks behind a point


def dataset_of(line: run_comparison.MethodRun, any_task: bool = True) -> Dataset | None:
    """The dataset of a line whose single tasks can be shown; None where they cannot, and it says why."""
    if not any_task or line.tasks is None:
        st.caption("The images of single tasks are not known: the run's files are damaged, or none is finished yet.")
        return None
    try:
        return shell.load_dataset(line.dataset)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {escape(str(error))}")
        return None


def list_tasks_of_quarter(main: Sequence[run_comparison.MethodRun], cell: str) -> None:
    """The tasks of a quarter, the worst of a method first."""
    name, _, quarter = cell.rpartition("@Q")
    line = run_comparison.by_name(main)[name]
    drilldown.heading(f"Tasks of quarter {escape(quarter)}, the worst of {escape(name)} first", "rank_of")
    list_tasks(line, run_comparison.tasks_of_quarter(line, int(quarter)), cell, "rank_task")


def list_largest_differences(main: Sequence[run_comparison.MethodRun], reference: str, other: str) -> None:
    """The tasks on which two methods differ most."""
    named = run_comparison.by_name(main)
    one, two = named[other], named[reference]
    apart = one.accuracy - two.accuracy
    order = np.argsort(-np.abs(np.nan_to_num(apart)), kind="stable")
    drilldown.heading(f"Where {escape(other)} and {escape(reference)} differ most", "differs")
    told = {
        int(t): f"{100 * one.accuracy[t]:.0f}% by {other}, {100 * two.accuracy[t]:.0f}% by {reference}" for t in order
    }
    list_tasks(one, order, other, "differs_task", told)


def list_tasks(
    line: run_comparison.MethodRun, order: np.ndarray, about: str, name: str, notes: Mapping[int, str] | None = None
) -> None:
    """Tasks of a line in this order with their images; `name` is where the chosen one is in the link."""
    order = order[np.isfinite(line.accuracy[order])]
    dataset = dataset_of(line)
    if dataset is None or line.tasks is None:
        return
    told = notes or {int(t): f"{100 * line.accuracy[t]:.0f}% right" for t in order}
    named = partial(recorded.task_id, dataset, line)
    drilldown.tasks(dataset, line.tasks, order[:MOST_LISTED], told, f"{line.digest} {about}", name, named=named)
