"""The page Runs: runs compared task by task, accuracy per class, errors, and all runs in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.ui.pages.runs.choice import COMPARISON, is_of_dataset, pick_runs, show_failed_methods, warn_of_other_datasets
from fsviz.ui.pages.runs.comparison import show_comparison
from fsviz.ui.pages.runs.first_run import offer_other_datasets, show_first_run, show_published
from fsviz.ui.pages.runs.run_table import show_all_runs
from fsviz.ui.pages.runs.settings import Settings, pick_settings
from fsviz.ui.parts import (
    access,
    controls,
    error_gallery,
    links,
    recorded,
    run_panel,
    shell,
)
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

CLASSES, ERRORS, ALL_RUNS = "Accuracy per class", "Errors", "All runs"
SECTIONS = (COMPARISON, CLASSES, ERRORS, ALL_RUNS)
SELECTIONS = {  # keys of the link that belong to one section
    COMPARISON: ("near", "task", "differs", "differs_task", "bar_of", "bar_task", "rank_of", "rank_task"),
    ERRORS: ("pair",),
    ALL_RUNS: ("filter",),
}
GROUP = Setting("group", "Testbed", "Runs of other testbeds are in the table of results only.", "choice", "")


def show(dataset: Dataset) -> None:
    runs = jobs.list_runs()
    selected_runs = pick_runs(runs, dataset)
    method_runs = _method_runs(selected_runs)
    if method_runs:
        _show_results(method_runs, selected_runs, runs, dataset)
        return
    run_panel.active_runs("runs")
    warn_of_other_datasets(selected_runs, dataset)
    if any(run.study == "evaluate" and run.active and is_of_dataset(run, dataset) for run in runs):
        shell.answer("No results yet: no task of any run is finished.", "The first results will be shown here.")
    elif selected_runs:
        shell.answer("No results: these methods failed.")
        show_failed_methods(selected_runs)
    else:
        show_first_run(dataset)
        offer_other_datasets(runs)
        if runs:
            show_all_runs(runs)
        return
    show_all_runs(runs)
    show_published()


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


def _method_runs(selected_runs: Sequence[jobs.Run]) -> list[run_comparison.MethodRun]:
    method_runs: list[run_comparison.MethodRun] = []
    for run in selected_runs:
        try:
            method_runs += recorded.method_runs(run)
        except FsvizError as error:
            st.error(escape(str(error)), icon="⚠️")
    return method_runs


def _show_results(
    every: list[run_comparison.MethodRun], selected_runs: Sequence[jobs.Run], runs: Sequence[jobs.Run], dataset: Dataset
) -> None:
    """The answer, and the selected section of the page."""
    groups, notes = run_comparison.group_by_tasks(every)  # the most accurate first, so that colours and rows agree
    main = _pick_group(groups)
    settings = pick_settings([run for group in groups.values() for run in group], groups[main])
    missing, n_missing = _without_results(selected_runs, every)
    comparison = recorded.compare(groups, main, settings.over, [*notes, *missing])
    sentence, more = run_comparison.significance(comparison, n_missing)
    shell.answer(escape(sentence), escape(more))
    warn_of_other_datasets(selected_runs, dataset)
    section = controls.pick_section("Section", SECTIONS, label_visibility="collapsed")
    for name, keys in SELECTIONS.items():
        if name != section:
            links.drop_from_link(*keys)
    if section == ALL_RUNS:
        run_panel.active_runs("runs")
        show_all_runs(runs)
    elif section == COMPARISON:
        figures, notices, rest = st.container(), st.container(), st.container()
        with notices:
            run_panel.active_runs("runs")
            _show_notes(comparison.notes, selected_runs)
            show_failed_methods(selected_runs)
        show_comparison(
            comparison, selected_runs, settings, _recipe_of(comparison.main[0], selected_runs), figures, rest
        )
    else:
        _show_predictions(comparison, settings, section)


def _without_results(
    selected_runs: Sequence[jobs.Run], method_runs: Sequence[run_comparison.MethodRun]
) -> tuple[list[str], int]:
    """Sentences about methods of unfinished runs that have no results yet, and their number."""
    begun = {(line.run_id, line.entry) for line in method_runs}
    sentences, n_missing = [], 0
    for run in selected_runs:
        failed = {str(row.get("label")) for row in (run.summary or {}).get("failed") or [] if isinstance(row, dict)}
        labels = [e.label for i, e in enumerate(evaluate.entries(run.spec)) if (run.id, i) not in begun]
        missing = [label for label in dict.fromkeys(labels) if label not in failed]
        if missing and run.state != "finished":
            n_missing += len(missing)
            sentences.append(f"Run {run.id} is {run.state}: no results yet of {', '.join(missing)}.")
    return sentences, n_missing


def _show_notes(notes: Sequence[str], selected_runs: Sequence[jobs.Run]) -> None:
    """Shows a warning about methods with unfinished tasks, and a button that resumes their runs."""
    if not notes:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(escape(" ".join(notes)), icon="⏸️")
        stopped = [run for run in selected_runs if run.state != "finished" and run.resumable]
        if stopped and access.can("run") and st.button("Resume", icon="▶️", key="resume_compared"):
            for run in stopped:
                access.do("run", jobs.resume, run.id)
            st.rerun()


def _pick_group(groups: Mapping[str, Sequence[run_comparison.MethodRun]]) -> str:
    """The digest of the tasks of figures and paired tests: those of most methods, or as picked."""
    if len(groups) == 1:
        return next(iter(groups))
    order = sorted(groups, key=lambda digest: -len(groups[digest]))
    names = {digest: _group_name(groups[digest][0]) for digest in order}
    return controls.pick(GROUP.with_(choices=names, default=order[0]), shell.side())


def _group_name(line: run_comparison.MethodRun) -> str:
    return f"{run_comparison.testbed_title(line)} ({line.testbed[:40]})"


def _recipe_of(line: run_comparison.MethodRun, selected_runs: Sequence[jobs.Run]) -> Mapping[str, Any]:
    for run in selected_runs:
        if run.id == line.run_id:
            return evaluate.run_testbeds(run.spec)[evaluate.entries(run.spec)[line.entry].testbed]["recipe"]
    return {}


def _show_predictions(comparison: run_comparison.RunComparison, settings: Settings, section: str) -> None:
    """Accuracy per class or errors of the highlighted method, with images."""
    line = run_comparison.by_name(comparison.main)[settings.method]
    try:
        dataset = shell.load_dataset(line.dataset)
        n_done = int(line.done.sum())
        predictions, tasks = recorded.predictions_of(line)
    except FsvizError as error:
        st.caption(f"No images: {escape(str(error))}")
        return
    if len(tasks) < n_done:
        st.caption(f"First {len(tasks):,} of {n_done:,} tasks.")
    key = f"runs_{line.run_id}_{line.entry}"
    if section == CLASSES:
        error_gallery.show_classes(dataset, predictions, tasks, settings.method, key, comparison.over)
    else:
        error_gallery.show_confusions(dataset, predictions, tasks, settings.method, key)
