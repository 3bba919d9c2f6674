"""Headline, figures, mistakes and single tasks of the shown results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.figures import runs as figures
from fsviz.records import Dataset, HeadlineNumber, Predictions
from fsviz.reports.tables import TOP5_FROM
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.ui.pages.evaluate.preview import RunView, full_run_note
from fsviz.ui.parts import (
    controls,
    error_gallery,
    export,
    recorded,
    run_panel,
    shell,
    task_list,
)
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

WHOSE = Setting("whose", "Answers of", "Also by a click on a point of the figure above.", "choice", "")


def show_results(dataset: Dataset, spec: evaluate.EvaluationSpec, view: RunView) -> None:
    """Headline, figures, mistakes and single tasks of a finished run or of a first look."""
    named = run_comparison.by_name(view.lines)
    over = recorded.widest(view.lines)
    table = run_comparison.with_interval(recorded.result_table(view.lines, over=over), over)
    top = table.loc[table["accuracy"].idxmax()]
    _show_headline(dataset, view, table, top, over, spec["sampler"]["n_tasks"] if spec.get("sampler") else 0)
    figure = st.container()  # filled when it is known whose answers are looked at: they have the band
    st.subheader("What gets confused", anchor=False)
    whose = _pick_method(named, str(top["name"]))
    with figure:
        _show_figure(view, table, whose, over)
    answer = view.answer(named[whose])
    error_gallery.show_confusions(dataset, answer, view.testbed.tasks, whose, key="look", over=over)
    _show_single_tasks(dataset, view, answer, whose)


def _link_keys(named: Mapping[str, run_comparison.MethodRun]) -> dict[str, str]:
    """The key of each method run in the link: its method and backbone."""
    return {f"{line.method}@{line.backbone}": name for name, line in named.items()}


def _pick_method(named: Mapping[str, run_comparison.MethodRun], best: str) -> str:
    """The line whose mistakes and tasks are shown: the best one, or the one chosen here or in the figure."""
    names = _link_keys(named)
    default = next(key for key, name in names.items() if name == best)
    return names[controls.pick(WHOSE.with_(choices=names, default=default))]


def _at_point(values: np.ndarray, point: Point) -> tuple[str | None, int] | None:
    """The line of a point and the task whose measure is nearest, or the single task that it stands for."""
    if point.x is None:
        return None
    if isinstance(task := point.at(0), int):
        return None, task
    return point.at(1), int(np.nanargmin(np.abs(values - float(point.x))))


def _show_single_tasks(dataset: Dataset, view: RunView, answer: Predictions, whose: str) -> None:
    """Every task whose images are at hand, the hardest first; the chosen one with its images and answers."""
    st.subheader("Task by task, the hardest first", anchor=False)
    testbed, line = view.testbed, run_comparison.by_name(view.lines)[whose]
    tasks = testbed.tasks
    accuracy = answer.task_mean(answer.rank == 0)
    coarsity = tasks.measures.get("coarsity")
    notes = {
        i: f"{accuracy[i]:.0%} right" + ("" if coarsity is None else f", coarsity\N{NO-BREAK SPACE}{coarsity[i]:.1f}")
        for i in range(len(tasks))
    }
    order = np.argsort(accuracy, kind="stable")
    left, right = shell.responsive_columns("single", [5, 6], gap="large")
    with left:
        task = task_list.pick_task(dataset, tasks, order, notes, testbed.name, "look_tasks")
    with right:
        st.markdown(f"**Task {task:,}**: {escape(whose)} names {accuracy[task]:.0%} of its queries rightly")
        task_list.show_task(dataset, tasks, task, "look_task", answer=answer, named=view.task_name(line, task))


def _show_headline(dataset: Dataset, view: RunView, table: Any, top: Any, over: str, n_tasks: int) -> None:
    tasks, n = view.testbed.tasks, len(view.lines)
    shape = (
        f"{int(top['n_tasks']):,} tasks, {escape(tasks.setting)}, {'up to ' if (tasks.query < 0).any() else ''}"
        f"{tasks.query.shape[2]:,} queries per class."
    )
    if view.run:
        st.caption(f"Finished run {escape(view.run)}: {shape}")
    else:
        st.caption(f"First look: {shape} {escape(full_run_note(dataset, view.testbed, n_tasks))}")
    if view.waiting:
        st.info(
            f"**{', '.join(map(escape, view.waiting))}** {'is' if len(view.waiting) == 1 else 'are'} slower and not "
            "in this first look, so it does not say which of the chosen methods is best. The run has them all.",
            icon="⏳",
        )
    chance = HeadlineNumber(
        "chance", "Guessing", 100 * tasks.chance_level, help="One class out of the ways of a task, at random."
    )
    numbers = [run_panel.most_accurate(top, over, n, len(view.waiting))]
    if n > 1:
        nearest = recorded.differences(view.lines, over=over).iloc[0]
        runner = table[table["name"] == nearest["name"]].iloc[0]
        ahead = HeadlineNumber.around("", "", nearest["difference"], nearest["ci95"], "points", signed=True)
        numbers.append(
            HeadlineNumber.around(
                "second",
                f"Next: {runner['name']}",
                runner["accuracy"],
                runner.get("ci95"),
                note=f"{ahead.number_text}, {nearest['verdict']}",
                help="Its difference to the best, task by task, with its 95% interval "
                f"{run_comparison.CI_UNITS[over]}. 'Real': chance alone would give such a difference less than 5 times "
                "in 100.",
            )
        )
    else:
        numbers.append(chance)
    if not np.isnan(top["Q1"]):
        apart = HeadlineNumber.around("", "", top["fine_to_coarse"], top["fine_to_coarse_ci95"], "points", signed=True)
        numbers += [
            HeadlineNumber.around(
                "finest",
                "Finest quarter (Q1)",
                top["Q1"],
                top.get("Q1_ci95"),
                help="The best method on the quarter of tasks with the lowest coarsity: its classes are closest.",
            ),
            HeadlineNumber.around(
                "coarsest",
                "Coarsest quarter (Q4)",
                top["Q4"],
                top.get("Q4_ci95"),
                note=f"{apart.number_text} from Q1",
                help="The best method on the quarter of tasks with the highest coarsity: its classes are farthest "
                "apart.",
            ),
        ]
    else:
        numbers += [chance, HeadlineNumber.count("tasks", "Tasks", int(top["n_tasks"]))]
    show_numbers(numbers)


def _show_figure(view: RunView, table: Any, whose: str, over: str) -> None:
    named = run_comparison.by_name(view.lines)
    testbed, n_tasks = view.testbed, int(named[whose].done.sum())
    lines = WHOSE.with_(choices=_link_keys(named))
    window = min(max(20, n_tasks // 5), n_tasks)
    curves = recorded.curves(view.lines, window=window, over=over)
    if curves:
        known = measures.get(run_comparison.QUARTERS)
        coarsity = testbed.tasks.measures[known.name]
        points = run_comparison.single_tasks(named[whose])
        at_hand = points[2] < len(testbed.tasks)
        points = (points[0][at_hand], points[1][at_hand], points[2][at_hand])
        figure = figures.plot_accuracy_by_measure(
            curves, points, axis=known.lower_title, measure=known.lower_title, height=380, banded=whose
        )
        export.chart(
            "Accuracy against a measure",
            figure,
            key="look_curves",
            sets=Click((lines, TASK), partial(_at_point, coarsity)),
        )
        st.caption(
            f"Rolling mean of accuracy over {window:,} of {n_tasks:,} tasks, sorted by {escape(known.lower_title)}"
            + f", with the 95% band of {escape(whose)} over {escape(over)}; point at another line for its own. "
            + f"Behind them, single tasks of {escape(whose)}: click one, or a line, to see the task there below. "
            + escape(draw.explain(known.name, testbed.recipe))
        )
    top5 = table["top5"] if (table["n_way"] >= TOP5_FROM).any() else None
    chance = 100 * testbed.tasks.chance_level
    export.chart(
        "Accuracy of the methods",
        figures.plot_accuracies(table["name"], table["accuracy"], table["ci95"], chance, top5, not view.waiting),
        key="look_bars",
        sets=Click({"y": lines}),
    )
    why = escape(run_comparison.no_curve_reason(view.lines))
    st.caption(
        f"{f'{why} ' if why else ''}Mean accuracy over the same {n_tasks:,} tasks; bars are 95% intervals "
        f"{run_comparison.CI_UNITS[over]}. The page Runs has the others. A click on a point shows that method's "
        "mistakes and tasks below."
    )
