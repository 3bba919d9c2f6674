"""Answer, figures, errors, classes and single tasks of the results on the page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.analyses.shallow_taxonomy import composition
from fsviz.difficulty import measures
from fsviz.figures import runs as figures
from fsviz.records import Dataset, Predictions
from fsviz.reports.tables import TOP5_FROM
from fsviz.settings import Setting
from fsviz.tasks import draw
from fsviz.ui.pages.evaluate.preview import RunView
from fsviz.ui.parts import (
    controls,
    error_gallery,
    export,
    links,
    recorded,
    shell,
    task_list,
)
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

WHOSE = Setting("whose", "Method", "Method of the section below; also by a click in the figure.", "choice", "")
CLASSES, ERRORS, TASKS = SECTIONS = ("Accuracy per class", "Errors", "Tasks")
HEIGHT = 300  # of both figures


def show_results(dataset: Dataset, view: RunView, figure: Any, details: Any, n_shot: int) -> None:
    """Answer, figures and sections of a finished run or of a preview, in their places on the page.

    n_shot  of the settings; 1 if they cannot be lowered
    """
    runs_by_name = run_comparison.by_name(view.lines)
    over = recorded.widest(view.lines)
    table = run_comparison.with_interval(recorded.result_table(view.lines, over=over), over)
    top = table.loc[table["accuracy"].idxmax()]
    _show_answer(view, table, over, n_shot)
    with details:
        left, right = st.columns([3, 2], vertical_alignment="center")
        with left:
            section = controls.pick_section("Section", SECTIONS, label_visibility="collapsed")
        links.drop_from_link(*([] if section == TASKS else [TASK.name]), *([] if section == ERRORS else ["pair"]))
        with right:
            method = _pick_method(runs_by_name, str(top["name"]))
    with figure:
        _show_figures(view, table, method, over)
        _show_caption(dataset, view, table, method, over)
    answer = view.answer(runs_by_name[method])
    with details:
        if section == TASKS:
            _show_single_tasks(dataset, view, answer, method)
        elif section == CLASSES:
            error_gallery.show_classes(dataset, answer, view.testbed.tasks, method, "look", over)
        else:
            error_gallery.show_confusions(dataset, answer, view.testbed.tasks, method, key="look")


def _show_answer(view: RunView, table: Any, over: str, n_shot: int) -> None:
    """The best method, and the tasks that it is the best on."""
    tasks, top = view.testbed.tasks, table.loc[table["accuracy"].idxmax()]
    sentence = run_comparison.best_method(table, recorded.differences(view.lines, over=over), len(view.waiting))
    n_query = f"{'up to ' if (tasks.query < 0).any() else ''}{tasks.query.shape[2]:,} queries per class"
    source = f"Run {view.run}" if view.run else "Preview"
    top5 = f" Top-5 accuracy {top['top5']:.1f}%." if top["n_way"] >= TOP5_FROM else ""
    more = (
        f"{source}: {int(top['n_tasks']):,} tasks, {n_query}; chance level "
        f"{100 * tasks.chance_level:.0f}%, 95% CI over {over}.{top5}"
    )
    if view.waiting:
        more += f" Slow methods run only in the full run: {', '.join(view.waiting)}."
    controls.show_answer(escape(sentence), escape(more), top["accuracy"] / 100, n_shot)


def _link_keys(runs_by_name: Mapping[str, run_comparison.MethodRun]) -> dict[str, str]:
    """The key of each method run in the link: its method and backbone."""
    return {f"{line.method}@{line.backbone}": name for name, line in runs_by_name.items()}


def _pick_method(runs_by_name: Mapping[str, run_comparison.MethodRun], best: str) -> str:
    """The method whose errors and tasks are shown: the best one, or the one chosen here or in the figure."""
    names = _link_keys(runs_by_name)
    default = next(key for key, name in names.items() if name == best)
    return names[controls.pick(WHOSE.with_(choices=names, default=default), label_visibility="collapsed")]


def _at_point(values: np.ndarray, point: Point) -> tuple[str | None, int] | None:
    """The method of a point and the task method measure is nearest, or the single task of the point."""
    if point.x is None:
        return None
    if isinstance(task := point.at(0), int):
        return None, task
    return point.at(1), int(np.nanargmin(np.abs(values - float(point.x))))


def _show_single_tasks(dataset: Dataset, view: RunView, answer: Predictions, method: str) -> None:
    """Tasks with predictions, hardest first; the selected one with its images and predictions."""
    testbed, line = view.testbed, run_comparison.by_name(view.lines)[method]
    tasks = testbed.tasks
    accuracy = answer.task_mean(answer.rank == 0)
    coarsity = tasks.measures.get("coarsity")
    notes = {
        i: f"{accuracy[i]:.0%} correct" + ("" if coarsity is None else f", coarsity\N{NO-BREAK SPACE}{coarsity[i]:.1f}")
        for i in range(len(tasks))
    }
    order = np.argsort(accuracy, kind="stable")
    left, right = shell.responsive_columns("single", [5, 6], gap="large")
    with left:
        task = task_list.pick_task(dataset, tasks, order, notes, testbed.name, "look_tasks")
    with right:
        st.markdown(f"**Task {task:,}**: {accuracy[task]:.0%} correct ({escape(method)})")
        task_list.show_task(dataset, tasks, task, "look_task", answer=answer, task_id=view.task_name(line, task))


def _show_figures(view: RunView, table: Any, method: str, over: str) -> None:
    """Accuracies of the methods, next to their accuracy by coarsity if the tasks differ in it."""
    runs_by_name, testbed = run_comparison.by_name(view.lines), view.testbed
    method_setting = WHOSE.with_(choices=_link_keys(runs_by_name))
    has_curves = run_comparison.QUARTERS in run_comparison.measures_of(view.lines)
    left, right = shell.responsive_columns("figures", [2, 3], gap="medium") if has_curves else (st.container(), None)
    top5 = table["top5"] if (table["n_way"] >= TOP5_FROM).any() else None
    with left:
        figure = figures.plot_accuracies(
            table["name"],
            table["accuracy"],
            table["ci95"],
            100 * testbed.tasks.chance_level,
            top5,
            not view.waiting,
            selected_method=method,
            height=HEIGHT,
        )
        sets = Click({1: method_setting}, also={"show": ERRORS})
        export.chart("Accuracy of the methods", figure, key="look_bars", sets=sets)
    if right is None:
        return
    with right:
        measure = measures.get(run_comparison.QUARTERS)
        coarsity = testbed.tasks.measures[measure.name]
        points = run_comparison.single_tasks(runs_by_name[method])
        is_loaded = points[2] < len(testbed.tasks)
        points = (points[0][is_loaded], points[1][is_loaded], points[2][is_loaded])
        curves = recorded.curves(view.lines, window=_window(view), over=over)
        title = measure.lower_title
        figure = figures.plot_accuracy_by_measure(
            curves, points, axis=title, measure=title, height=HEIGHT, banded=method
        )
        sets = Click((method_setting, TASK), partial(_at_point, coarsity), also={"show": TASKS})
        export.chart("Accuracy by coarsity", figure, key="look_curves", sets=sets)


def _window(view: RunView) -> int:
    n_tasks = int(view.lines[0].done.sum())
    return min(max(20, n_tasks // 5), n_tasks)


def _show_caption(dataset: Dataset, view: RunView, table: Any, method: str, over: str) -> None:
    """Shows a caption that explains the figures, with the accuracy on fine-grained and on coarse tasks."""
    tests = f"The same tasks for all methods, 95% CI over {escape(over)}. Significant: p < 0.05, Holm-corrected."
    if reason := run_comparison.no_curve_reason(view.lines):
        st.caption(f"{escape(reason)} Click a method to see its errors.", help=tests)
        return
    quarters = run_comparison.describe_quarters(table[table["name"] == method].iloc[0])
    if note := composition(dataset, view.testbed.tasks):
        st.caption(escape(note))
    st.caption(
        f"Right: rolling mean over {_window(view):,} tasks, 95% band for {escape(method)}: {escape(quarters)}. Click a "
        "method for its errors, a point for its task.",
        help=escape(
            f"{tests} Q1 and Q4: quarters of the tasks with the lowest and the highest coarsity. "
            f"{draw.explain(run_comparison.QUARTERS, view.testbed.recipe)}"
        ),
    )
