"""The page Runs: any set of runs compared, with published numbers next to them, and all runs in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.records import Dataset, HeadlineNumber
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.ui.pages.runs.choice import is_of_dataset, pick_runs, show_failed_methods, warn_of_other_datasets
from fsviz.ui.pages.runs.curves import show_curves
from fsviz.ui.pages.runs.exports import show_exports
from fsviz.ui.pages.runs.first_run import offer_other_datasets, show_first_run, show_published
from fsviz.ui.pages.runs.results import show_difference_table, show_differences, show_ranks, show_results
from fsviz.ui.pages.runs.run_table import show_all_runs
from fsviz.ui.pages.runs.tasks import list_largest_differences, list_tasks_of_quarter
from fsviz.ui.parts import (
    access,
    controls,
    error_gallery,
    recorded,
    run_panel,
    shell,
)
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

GROUP = Setting(
    "group",
    "Tasks of the figures",
    "Runs of different tasks share the table; figures and paired tests are about one testbed.",
    "choice",
    "",
)
OVER = Setting(
    "over",
    "95% intervals over",
    "Tasks of one testbed share images, so they are not independent. Tasks: what other tasks of these very images "
    "would give; narrow with many tasks, and what papers print. Images: what other images of the same classes would "
    "give. Classes: what other classes would give. Every interval of the comparison, and what is called real, follows.",
    "choice",
    "tasks",
    choices={name: name for name in run_comparison.CI_UNITS},
    advanced=True,
)


def show(dataset: Dataset) -> None:
    runs = jobs.list_runs()
    run_panel.active_runs("runs")
    chosen = pick_runs(runs, dataset)
    lines = _method_runs(chosen)
    warn_of_other_datasets(chosen, dataset)
    if lines:
        _show_comparison(lines, chosen)
    elif any(run.study == "evaluate" and run.active and is_of_dataset(run, dataset) for run in runs):
        st.info("No task of any run is finished yet; the first results will be shown here.", icon="⏳")
        show_published()
    elif chosen:
        show_failed_methods(chosen)
    else:
        show_first_run(dataset)
        offer_other_datasets(runs)
        show_published()
    if runs and not (lines and shell.classroom()):  # a class looks at what came out
        show_all_runs(runs)


PAGE = Page(
    slug="runs",
    label="Runs",
    icon="📈",
    group="Results",
    order=1,
    question="Is one method significantly better?",
    lead="Results of finished runs on {dataset}, compared task by task.",
    paper="Bennequin et al. (2022), figure 5 and tables 1 to 3",
    explains=("accuracy", "interval", "paired", "correlation", "coarsity"),
    keywords=("p value", "paired test", "LaTeX"),
    show=show,
)


def _method_runs(chosen: Sequence[jobs.Run]) -> list[run_comparison.MethodRun]:
    found: list[run_comparison.MethodRun] = []
    for run in chosen:
        try:
            found += recorded.method_runs(run)
        except FsvizError as error:
            st.error(escape(str(error)), icon="⚠️")
    return found


def _show_comparison(every: list[run_comparison.MethodRun], chosen: Sequence[jobs.Run]) -> None:
    groups, notes = run_comparison.group_by_tasks(every)  # the most accurate first, so that colours and rows agree
    main = _pick_group(groups)
    over = _pick_interval([run for group in groups.values() for run in group])
    more, n_missing = _show_unfinished(chosen, every, notes)
    comparison = recorded.compare(groups, main, over, [*notes, *more])
    _show_headline(comparison, n_missing)
    section = show_curves(comparison, _recipe_of(comparison.main[0], chosen))
    show_failed_methods(chosen)
    published = show_results(comparison)
    left, right = shell.responsive_columns("methods", 2, gap="large")
    with left:
        cell = show_ranks(comparison.main)
    with right:
        other = show_differences(comparison, len(groups))
    if cell:
        list_tasks_of_quarter(comparison.main, cell)
    if other:
        list_largest_differences(comparison.main, str(comparison.differences["reference"].iloc[0]), other)
    if len(comparison.differences) and not shell.classroom():
        show_difference_table(comparison.differences)
    _show_mistakes(comparison.runs, over)
    if not shell.classroom():
        show_exports(comparison, chosen, section, published)


def _show_unfinished(
    chosen: Sequence[jobs.Run], lines: Sequence[run_comparison.MethodRun], notes: Sequence[str]
) -> tuple[Sequence[str], int]:
    """Shows which methods of unfinished runs have no results, and resumes them; returns sentences beyond the notes, and
    how many methods have no results yet."""
    unfinished = [run for run in chosen if run.state != "finished"]
    begun = {(line.run_id, line.entry) for line in lines}
    more, n_missing = [], 0
    for run in unfinished:
        failed = {str(one.get("label")) for one in (run.summary or {}).get("failed") or [] if isinstance(one, dict)}
        labels = [e.label for i, e in enumerate(evaluate.entries(run.spec)) if (run.id, i) not in begun]
        if missing := [label for label in dict.fromkeys(labels) if label not in failed]:
            n_missing += len(missing)
            more.append(f"Run {run.id} is {run.state}; it has no results yet of {', '.join(missing)}.")
    if told := [*notes, *more]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(escape(" ".join(told)), icon="⏸️")
            stopped = [run for run in unfinished if run.resumable]
            if stopped and access.can("run") and st.button("Resume", icon="▶️", key="resume_compared"):
                for run in stopped:
                    access.do("run", jobs.resume, run.id)
                st.rerun()
    return more, n_missing


def _pick_group(groups: Mapping[str, Sequence[run_comparison.MethodRun]]) -> str:
    """The digest of the tasks that figures and paired tests are about: the largest group, or one that is picked."""
    if len(groups) == 1:
        return next(iter(groups))
    order = sorted(groups, key=lambda digest: -len(groups[digest]))
    names = {digest: _group_name(groups[digest][0]) for digest in order}
    return controls.pick(GROUP.with_(choices=names, default=order[0]), shell.side())


def _group_name(line: run_comparison.MethodRun) -> str:
    return f"{run_comparison.testbed_title(line)} ({line.testbed[:40]})"


def _pick_interval(lines: list[run_comparison.MethodRun]) -> str:
    """Picks what all intervals are over. The widest that is known unless chosen, as in reports and
    commands."""
    return controls.pick(OVER.with_(default=recorded.widest(lines)), shell.side(), as_buttons=True)


def _recipe_of(line: run_comparison.MethodRun, chosen: Sequence[jobs.Run]) -> Mapping[str, Any]:
    for run in chosen:
        if run.id == line.run_id:
            return evaluate.run_testbeds(run.spec)[evaluate.entries(run.spec)[line.entry].testbed]["recipe"]
    return {}


def _show_headline(comparison: run_comparison.RunComparison, n_missing: int) -> None:
    rows, differences, over = comparison.main_table, comparison.differences, comparison.over
    top = rows.loc[rows["accuracy"].idxmax()]
    margin = HeadlineNumber.worded(
        "margin", "Compared with", "nothing yet", help="Evaluate a second method on the same tasks."
    )
    if len(differences):
        second = differences.iloc[0]
        margin = HeadlineNumber.around(
            "margin",
            f"Ahead of {second['name']}",
            abs(second["difference"]),
            second["ci95"],
            "points",
            digits=2,
            signed=True,
            note=f"{second['verdict']}, over {over}",
            coloured=bool(second["significant"]),
            help="Mean of the differences task by task. 'Real' when chance alone would give such a difference less "
            f"than 5 times in 100, after correcting for the number of comparisons. Intervals "
            f"{run_comparison.CI_UNITS[over]}.",
        )
    measure = measures.lower_title(run_comparison.QUARTERS)
    drop = HeadlineNumber.worded("quarters", "Quarters", "none", help=f"Tasks carry no {measure}, or all the same.")
    if not np.isnan(top["Q1"]):
        drop = HeadlineNumber.around(
            "quarters",
            "From fine to coarse",
            top["fine_to_coarse"],
            top["fine_to_coarse_ci95"],
            "points",
            signed=True,
            help="Accuracy of the best method on the quarter of tasks with the highest coarsity (Q4), whose classes "
            f"are farthest apart, minus that with the lowest (Q1). 95% interval {run_comparison.CI_UNITS[over]}.",
        )
    testbed = f"{top['testbed_title']}. Testbed {top['testbed']}."
    tasks = HeadlineNumber.count("tasks", "Tasks", int(top["n_tasks"]), help=testbed)
    show_numbers([run_panel.most_accurate(top, over, len(rows), n_missing), margin, drop, tasks])


def _show_mistakes(lines: Sequence[run_comparison.MethodRun], over: str) -> None:
    st.subheader("What gets confused", anchor=False)
    named = run_comparison.by_name(lines)
    who = st.selectbox("Mistakes of", list(named), key="mistakes_of") if len(named) > 1 else next(iter(named))
    line = named[who if who in named else next(iter(named))]
    try:
        dataset = shell.load_dataset(line.dataset)
        done = int(line.done.sum())
        answer, tasks = recorded.predictions_of(line)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {escape(str(error))}")
        return
    if len(tasks) < done:
        st.caption(f"Of the first {len(tasks):,} of {done:,} tasks.")
    error_gallery.show_confusions(
        dataset, answer, tasks, str(who), key=f"mistakes_{line.run_id}_{line.entry}", over=over
    )
