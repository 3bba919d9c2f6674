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
    """The table with intervals and bold bests, published rows below it, and semantic vs uniform tasks."""
    st.subheader("Results", anchor=False)
    pairs, over = comparison.pairs, comparison.over
    for (dataset, setting), pair in pairs.items():
        title = shell.dataset_title(dataset)
        st.markdown(f"**Semantic vs uniform tasks: {escape(title)}, {escape(setting)}**")
        st.html(report.side_by_side_table(pair, only_over_tasks(published_side_by_side(setting), over)))
    if pairs:
        st.caption(
            "Inductive methods above the line, transductive ones below. Published rows are of tieredImageNet.",
            help="Same layout as tables 1 and 2 of Bennequin et al. (2022).",
        )
    with st.expander("All rows") if pairs else st.container():
        published = _pick_published(comparison.main[0])
        st.html(report.results_table(comparison.table, only_over_tasks(published.rows, over)))
    has_hidden = published.rows is not None and over != "tasks"
    st.caption(
        f"95% CI over {escape(over)}. **Bold**: best per column, same tasks. Q1 = finest tasks, Q4 = coarsest. "
        + escape(published.note)
        + (" Published intervals are over tasks, so they are not shown." if has_hidden else "")
        + (" Missing intervals are not available yet." if comparison.table["ci95"].isna().any() else "")
    )
    return published


def only_over_tasks(published: pd.DataFrame | None, over: str) -> pd.DataFrame | None:
    """Published rows without their intervals, which are over tasks, if other intervals are over something else."""
    if published is None or over == "tasks":
        return published
    return published.assign(**{name: np.nan for name in published if name.endswith("ci95")})


def _pick_published(first: run_comparison.MethodRun) -> run_report.Published:
    """The published rows that are picked to be shown below the results."""
    own = published_benchmarks(first.dataset)
    every = published_benchmarks()
    options: list[Any] = [NONE, *own, *[pair for pair in every if pair not in own]]
    same = [pair for pair in own if pair[1].startswith(first.setting)]
    near = [pair for pair in every if pair[1].startswith(first.setting) and pair[0] == "better-tieredImageNet"]
    default = [*same, *own, *near, NONE][0]
    labels = {json.dumps(o): "none" if o == NONE else f"{benchmark_title(o[0])}, {o[1]}" for o in options}
    picked = st.columns([3, 2])[0].selectbox(
        "Published results",
        list(labels),
        index=list(labels).index(json.dumps(default)),
        format_func=lambda key: labels[key],
        key="published",
        help="As printed in the papers; not computed here.",
    )
    pair = json.loads(picked)
    if pair == NONE:
        return run_report.Published()
    rows = published_table(*pair)
    rows = rows[rows["accuracy"].notna()]
    if tuple(pair) in own:
        return run_report.Published(rows, "Published rows: same benchmark, with the backbone of the paper.")
    title = benchmark_title(pair[0])
    return run_report.Published(rows, f"Published rows: another dataset ({title}), so compare trends, not values.")


def show_ranks(main: Sequence[run_comparison.MethodRun]) -> str:
    """The ranks by quarter of the tasks; returns the cell that was clicked, "" for none."""
    st.subheader("Ranking by coarsity", anchor=False)
    ranks = recorded.ranks(main)
    if ranks.empty or len(main) < 2:
        st.caption("Ranks need two methods on the same tasks and a dataset with a taxonomy.")
        return ""
    cell = drilldown.chart(
        "Ranks by quarter of the tasks",
        figures.plot_ranks(ranks),
        key="ranks",
        name="rank_of",
        texts=[f"{name}@Q{b}" for name, b in ranks[["method", "bin"]].itertuples(index=False)],
        about=main[0].digest,
    )
    st.caption("Rank per quarter of the tasks, finest first, 1 = best. Click a cell to list its tasks.")
    return cell


def show_differences(comparison: run_comparison.RunComparison, height: int) -> str:
    """The paired differences; returns the method that was clicked, "" for none."""
    differences = comparison.differences
    return drilldown.chart(
        "Paired differences",
        figures.plot_differences(differences, height),
        key="differences",
        name="differs",
        texts=differences["name"].tolist(),
        place=2,
        about=comparison.main[0].digest,
    )


def show_difference_table(differences: pd.DataFrame) -> None:
    """The differences as a table, which needs the whole width of the page."""
    with st.expander(f"Paired differences to {escape(differences['reference'].iloc[0])} as a table"):
        export.table(DIFFERENCES.without("reference"), differences)  # the reference is in the title
