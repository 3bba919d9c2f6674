"""The results table with published rows, ranks by quarter, and paired differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.datasets.published import benchmark_title, published_benchmarks, published_side_by_side, published_table
from fsviz.figures import runs as figures
from fsviz.reports import html as report
from fsviz.reports import runs as run_report
from fsviz.reports.tables import DIFFERENCES
from fsviz.ui.parts import (
    drilldown,
    export,
    recorded,
    shell,
)
from fsviz.ui.parts.shell import escape

NONE = "none"


def show_results(comparison: run_comparison.RunComparison) -> run_report.Published:
    """The table with intervals and bold bests, the published rows below it, and both kinds of tasks side by side."""
    st.subheader("Results", anchor=False)
    pairs, over = comparison.pairs, comparison.over
    for (dataset, setting), pair in pairs.items():
        title = shell.dataset_title(dataset)
        st.markdown(f"**Semantic beside uniform tasks: {escape(title)}, {escape(setting)}**")
        st.html(report.side_by_side_table(pair, only_over_tasks(published_side_by_side(setting), over)))
    if pairs:
        st.caption(
            "As tables 1 and 2 of Bennequin et al. (2022): the same methods on tasks of classes that are close in "
            "meaning (semantic) and on tasks of any classes (uniform). Methods above the line judge each query alone, "
            "those below look at all queries of a task. Published rows are of tieredImageNet: where that is another "
            "dataset, compare the pattern, not the numbers."
        )
    with st.expander("Row by row") if pairs else st.container():
        published = _pick_published(comparison.main[0])
        st.html(report.results_table(comparison.table, only_over_tasks(published.rows, over)))
    st.caption(
        f"Accuracy in percent with 95% intervals {run_comparison.CI_UNITS[over]}. **Bold**: best of the column among "
        "rows "
        "of the same tasks. Q1 is the quarter of tasks with the lowest coarsity, whose classes are closest, Q4 that "
        "with the highest; the CSV has their intervals too."
        + (f" {escape(published.note)}" if published.note else "")
        + (
            " Published intervals are over tasks, so left out."
            if published.rows is not None and over != "tasks"
            else ""
        )
        + (" An interval that is not known yet is left out." if comparison.table["ci95"].isna().any() else "")
    )
    return published


def only_over_tasks(published: pd.DataFrame | None, over: str) -> pd.DataFrame | None:
    """Published intervals are over tasks: beside others they are left out."""
    if published is None or over == "tasks":
        return published
    return published.assign(**{name: np.nan for name in published if name.endswith("ci95")})


def _pick_published(first: run_comparison.MethodRun) -> run_report.Published:
    """The published rows that are picked to stand next to the results."""
    own = published_benchmarks(first.dataset)
    every = published_benchmarks()
    options: list[Any] = [NONE, *own, *[pair for pair in every if pair not in own]]
    same = [pair for pair in own if pair[1].startswith(first.setting)]
    near = [pair for pair in every if pair[1].startswith(first.setting) and pair[0] == "better-tieredImageNet"]
    default = [*same, *own, *near, NONE][0]
    labels = {json.dumps(o): "none" if o == NONE else f"{benchmark_title(o[0])}, {o[1]}" for o in options}
    picked = st.columns([3, 2])[0].selectbox(
        "Published numbers beside them",
        list(labels),
        index=list(labels).index(json.dumps(default)),
        format_func=lambda key: labels[key],
        key="published",
        help="Numbers as printed in the papers. They were not computed here.",
    )
    pair = json.loads(picked)
    if pair == NONE:
        return run_report.Published()
    rows = published_table(*pair)
    rows = rows[rows["accuracy"].notna()]
    if tuple(pair) in own:
        return run_report.Published(
            rows, "Published rows are of the same benchmark, with the backbone the paper names."
        )
    title = benchmark_title(pair[0])
    return run_report.Published(
        rows, f"Published rows are of another benchmark ({title}): compare the pattern, not the numbers."
    )


def show_ranks(main: Sequence[run_comparison.MethodRun]) -> str:
    """The ranks; returns the cell that was clicked, "" for none."""
    st.subheader("Who is best on which tasks?", anchor=False)
    ranks = recorded.ranks(main)
    if ranks.empty or len(main) < 2:
        st.caption("Ranks need at least two methods on the same tasks, and a dataset with a taxonomy.")
        return ""
    chosen = drilldown.chart(
        "Ranks by quarter of the tasks",
        figures.plot_ranks(ranks),
        key="ranks",
        name="rank_of",
        texts=[f"{name}@Q{b}" for name, b in ranks[["method", "bin"]].itertuples(index=False)],
        about=main[0].digest,
    )
    st.caption(
        "Rank by mean accuracy in each quarter of the tasks, from the finest to the coarsest; 1 is best. Click a cell "
        "for its tasks."
    )
    return chosen


def show_differences(comparison: run_comparison.RunComparison, n_groups: int) -> str:
    """The differences; returns the method that was clicked, "" for none."""
    differences, over = comparison.differences, comparison.over
    st.subheader("Is the difference real?", anchor=False)
    if differences.empty:
        st.caption(
            "A paired comparison needs at least two methods on the same tasks. Evaluate another one on this testbed."
        )
        return ""
    chosen = drilldown.chart(
        "Paired differences",
        figures.plot_differences(differences),
        key="differences",
        name="differs",
        texts=differences["name"].tolist(),
        place=2,
        about=comparison.main[0].digest,
    )
    st.caption(
        f"Differences to {escape(differences['reference'].iloc[0])} over the same "
        f"{int(differences['n_tasks'].max()):,} tasks, task by task, with 95% intervals "
        f"{run_comparison.CI_UNITS[over]}. "
        + ("Filled: real (p below 5%" + (" in a paired t test and in Wilcoxon's test" if over == "tasks" else ""))
        + ", corrected for the number of comparisons by Holm's method); hollow: chance will do, or nothing is known."
        + (" Only runs of the same tasks are compared; the sidebar says which." if n_groups > 1 else "")
        + " Click a point for the tasks on which the two differ most."
    )
    return chosen


def show_difference_table(differences: pd.DataFrame) -> None:
    """The differences as a table, which needs the whole width of the page."""
    with st.expander(f"The differences to {escape(differences['reference'].iloc[0])} in numbers"):
        export.table(DIFFERENCES.without("reference"), differences)  # the reference is named above
