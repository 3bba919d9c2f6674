"""The comparison of runs: paired differences, accuracy by a measure, results, ranks and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.figures import runs as figures
from fsviz.figures import significance
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.settings import RawSettings
from fsviz.ui.pages.runs.curves import Curves, list_tasks_near, plot_curves, show_correlations
from fsviz.ui.pages.runs.exports import show_exports
from fsviz.ui.pages.runs.results import show_difference_table, show_differences, show_ranks, show_results
from fsviz.ui.pages.runs.settings import Settings
from fsviz.ui.pages.runs.tasks import list_largest_differences, list_tasks, list_tasks_of_quarter
from fsviz.ui.parts import drilldown, export, shell
from fsviz.ui.parts.shell import escape

HEIGHT = 340  # of the figures


def show_comparison(
    comparison: run_comparison.RunComparison,
    selected_runs: Sequence[jobs.Run],
    settings: Settings,
    recipe: RawSettings,
    figures_place: Any,
    rest: Any,
) -> None:
    """Figures and what a click in them lists, then results, ranks, correlations and exports."""
    section = run_report.MeasureSection()
    with figures_place:
        curves, method = _show_figures(comparison, settings, recipe)
        if method:
            _list_tasks_of(comparison, method)
        if curves is not None:
            list_tasks_near(comparison.main, settings.measure, settings.method)
    with rest:
        published = show_results(comparison)
        if curves is not None:
            left, right = shell.responsive_columns("methods", 2, gap="large")
            with left:
                cell = show_ranks(comparison.main)
            with right:
                section = show_correlations(comparison, curves, recipe)
            if cell:
                list_tasks_of_quarter(comparison.main, cell)
        if shell.classroom():
            return
        if len(comparison.differences):
            show_difference_table(comparison.differences)
        show_exports(comparison, selected_runs, section, published)


def _show_figures(
    comparison: run_comparison.RunComparison, settings: Settings, recipe: RawSettings
) -> tuple[Curves | None, str]:
    """Differences (accuracies of one method) next to curves; returns the curves and the method that was clicked."""
    several = not comparison.differences.empty
    curves = plot_curves(comparison, settings, recipe, HEIGHT) if settings.measure else None
    if several:
        left, right = shell.responsive_columns("figures", [2, 3], gap="medium")
    else:
        left = right = st.container()
    method = ""
    with left:
        if several:
            method = show_differences(comparison, HEIGHT)
    with right:
        if curves is None:
            method = _show_accuracies(comparison, settings.method) or method
        else:
            export.chart("Accuracy by a measure", curves.figure, key="curves", sets=curves.click)
    _show_caption(comparison, curves, several)
    return curves, method


def _show_accuracies(comparison: run_comparison.RunComparison, highlighted: str) -> str:
    """Mean accuracies; returns the method that was clicked, "" for none."""
    rows = comparison.main_table
    has_top5 = (rows["n_way"] >= tables.TOP5_FROM).any()
    return drilldown.chart(
        "Accuracy",
        figures.plot_accuracies(
            rows["name"],
            rows["accuracy"],
            rows["ci95"],
            top5=rows["top5"] if has_top5 else None,
            selected_method=highlighted,
            height=HEIGHT,
        ),
        key="bars",
        name="bar_of",
        texts=rows["name"].tolist(),
        place=1,
        about=comparison.main[0].digest,
    )


def _show_caption(comparison: run_comparison.RunComparison, curves: Curves | None, several: bool) -> None:
    """Shows a caption that explains the figures."""
    texts, tests = [], f"95% CI over {comparison.over}. Testbed {comparison.main[0].testbed}."
    if several:
        differences = comparison.differences
        n_tasks = int(differences["n_tasks"].max())
        texts.append(f"Left: {n_tasks:,} tasks. {significance.HOLM}")
        tests += f" {run_comparison.describe_p(comparison.over)}"
    if curves is None:
        texts += [run_comparison.no_curve_reason(comparison.main), "Click a method to list its tasks."]
    else:
        start = "Right: r" if several else "R"
        texts.append(f"{start}{curves.caption[1:]} Click a point or line to list its tasks.")
    if n_others := len(comparison.runs) - len(comparison.main):
        texts.append(f"{n_others} methods ran on other tasks: see Results.")
    st.caption(escape(" ".join(texts)), help=escape(" ".join([tests, curves.help if curves else ""])))


def _list_tasks_of(comparison: run_comparison.RunComparison, method: str) -> None:
    """Tasks on which a method differs most from the best one; of that one, its hardest tasks."""
    differences, runs_by_name = comparison.differences, run_comparison.by_name(comparison.main)
    reference = str(differences["reference"].iloc[0]) if len(differences) else method
    if method != reference:
        list_largest_differences(comparison.main, reference, method)
        return
    drilldown.heading(f"Tasks, hardest for {escape(method)} first", "bar_of")
    run = runs_by_name[method]
    list_tasks(run, np.argsort(run.accuracy, kind="stable"), method, "bar_task")
