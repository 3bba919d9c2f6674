"""All runs: actions on the selected ones, a filter, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import jobs, studies
from fsviz.features.backbones import title_of
from fsviz.reports.tables import RUNS
from fsviz.sampling import SAMPLERS
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.ui.pages.runs.choice import is_comparable
from fsviz.ui.parts import (
    access,
    clicks,
    controls,
    export,
    run_panel,
    shell,
)
from fsviz.ui.parts.shell import escape

FILTER = Setting("filter", "Filter runs", "Words of the name, note, method, dataset, state or id.", "text", "")


def show_all_runs(runs: Sequence[jobs.Run]) -> None:
    """Actions on the selected runs, the filter and the table, from top to bottom."""
    actions = st.container()
    words = controls.pick(FILTER, label_visibility="collapsed", placeholder="Filter runs…")
    rows = [(run, _row(run)) for run in runs]
    rows = [(run, row) for run, row in rows if matches(row, words)]
    if not rows:
        st.caption(f"No run matches “{escape(words)}”.")
        return
    table = pd.DataFrame([row for _, row in rows])
    if not any(run.active for run, _ in rows):
        table = table.drop(columns="progress")
    event = export.table(
        RUNS,
        table,
        key="runs_table",
        on_select="rerun",
        selection_mode="multi-row",
        height=min(460, 38 + 35 * len(table)),
    )
    with actions:
        _actions([rows[at][0] for at in clicks.data_in(event) if at < len(rows)])


def matches(row: dict[str, Any], words: str) -> bool:
    """Whether the row of a run has every word in one of its texts."""
    text = " ".join(value for value in row.values() if isinstance(value, str)).casefold()
    return all(word in text for word in words.casefold().split())


def _row(run: jobs.Run) -> dict[str, Any]:
    """A run as a row of RUNS."""
    results = (run.summary or {}).get("results") or []
    accuracies = [r["accuracy"] for r in results if isinstance(r, dict) and r.get("accuracy") is not None]
    if run.study == "evaluate" and evaluate.is_complete(run.spec):
        methods = ", ".join(dict.fromkeys(entry.label for entry in evaluate.entries(run.spec)))
        tasks = "; ".join(_describe_tasks(testbed) for testbed in evaluate.run_testbeds(run.spec))
    else:
        methods, tasks = title_of(str(run.spec.get("backbone", ""))), ""
    return {
        "created": run_panel.when(run.created),
        "name": run.name,
        "note": run.note,
        "dataset": shell.dataset_title(str(run.spec.get("dataset", "?"))),
        "study": studies.title_of(run.study),
        "methods": methods,
        "state": run_panel.STATES[run.state],
        "error": access.without_paths(run.error or ("" if run.state == "finished" else run.message)),
        "progress": 100 * run.share_done,
        "accuracy": max(accuracies) if accuracies else None,
        "tasks": tasks,
        "seconds": run.seconds,
        "engine": str(run.spec.get("device", "")) if jobs.engine_of(run) == jobs.Engine() else str(jobs.engine_of(run)),
        "run": run.id,
    }


def _describe_tasks(testbed: evaluate.RunTestbed) -> str:
    shape, sampler = testbed["tasks"], str(testbed["recipe"].get("sampler", ""))
    sampler = SAMPLERS[sampler].title if sampler in SAMPLERS else sampler.replace("_", " ")
    return f"{shape['n_tasks']:,} × {shape['setting']}{f', {sampler}' if sampler else ''}"


def _actions(selected: Sequence[jobs.Run]) -> None:
    """Buttons for the selected runs."""
    comparable = [run.id for run in selected if is_comparable(run)]
    active = [run for run in selected if run.active]
    resumable = [run for run in selected if run.resumable]
    removable = [run for run in selected if not run.active]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(_count("Compare", comparable), disabled=not comparable, type="primary"):
            _compare([run for run in selected if run.id in comparable])
        if not access.can("run"):
            access.show_denied("run")
            return
        if st.button(_count("Resume", resumable), disabled=not resumable):
            for run in resumable:
                access.do("run", jobs.resume, run.id)
            st.rerun()
        if st.button(_count("Cancel", active), disabled=not active):
            for run in active:
                access.do("run", jobs.cancel, run.id)
            st.rerun()
        with st.popover("Name, note", disabled=len(selected) != 1):
            if len(selected) == 1:
                edit_label(selected[0])
        if st.button(_count("Delete", removable), disabled=not removable):
            _confirm_delete([run.id for run in removable])
        if not selected:
            st.caption("Select runs to compare, resume, cancel, name or delete.", width="content")
    _pick_workers()


def _count(action: str, runs: Sequence[Any]) -> str:
    return f"{action} {len(runs)}" if runs else action


def _compare(runs: Sequence[jobs.Run]) -> None:
    """Shows the comparison of these runs, on the page of their dataset."""
    names = {str(run.spec["dataset"]) for run in runs}
    if len(names) == 1 and names <= set(shell.known_names()):
        shell.choose_dataset(next(iter(names)))
    st.session_state["compare_next"] = [run.id for run in runs]
    st.rerun()


def edit_label(run: jobs.Run) -> None:
    """Fields for the name and the note of a run."""
    name = st.text_input("Name", run.name, key=f"name_{run.id}", max_chars=jobs.MAX_LABEL["name"])
    note = st.text_area("Note", run.note, key=f"note_{run.id}", max_chars=jobs.MAX_LABEL["note"])
    if st.button("Save", type="primary", key=f"label_{run.id}"):
        access.do("run", jobs.label, run.id, name, note)
        st.rerun()


def _pick_workers() -> None:
    """The number of runs at the same time."""
    now = jobs.n_workers()
    n_workers = (
        shell.side()
        .expander("Compute")
        .number_input(
            "Runs at the same time",
            1,
            jobs.MAX_WORKERS,
            now,
            help="Each run has its own process; further runs wait in the queue.",
        )
    )
    if n_workers != now:
        access.do("workers", jobs.set_workers, int(n_workers))
        st.rerun()


@st.dialog("Delete runs?")
@shell.errors_on_page()
def _confirm_delete(run_ids: list[str]) -> None:
    runs = f"{len(run_ids)} run{'s' if len(run_ids) > 1 else ''}"
    st.write(f"{runs}: {escape(', '.join(run_ids))}. The results are deleted. This cannot be undone.")
    if st.button("Delete", type="primary"):
        for run_id in run_ids:
            access.do("delete", jobs.delete, run_id)
        st.rerun()
