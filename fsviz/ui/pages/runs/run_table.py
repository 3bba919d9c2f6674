"""The table of all runs, and the buttons that compare, cancel, resume and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import jobs, studies
from fsviz.features.backbones import title_of
from fsviz.reports.tables import RUNS
from fsviz.sampling import SAMPLERS
from fsviz.studies import evaluate
from fsviz.ui.pages.runs.choice import is_comparable
from fsviz.ui.parts import (
    access,
    clicks,
    export,
    run_panel,
    shell,
)
from fsviz.ui.parts.shell import escape


def show_all_runs(runs: Sequence[jobs.Run]) -> None:
    """The table of runs, and what can be done to the ticked ones."""
    st.subheader("All runs", anchor=False)
    table = pd.DataFrame([_row(run) for run in runs])
    if not any(run.active for run in runs):
        table = table.drop(columns="progress")
    event = export.table(
        RUNS,
        table,
        key="runs_table",
        on_select="rerun",
        selection_mode="multi-row",
        height=min(320, 38 + 35 * len(table)),
    )
    marked = [runs[row] for row in clicks.data_in(event) if row < len(runs)]
    st.caption(
        "Tick rows to compare those runs" + (", or to cancel, resume or delete them." if access.can("run") else ".")
    )
    _actions(marked)


def _row(run: jobs.Run) -> dict[str, Any]:
    found = (run.summary or {}).get("results") or []
    accuracies = [r["accuracy"] for r in found if isinstance(r, dict) and r.get("accuracy") is not None]
    if run.study == "evaluate" and evaluate.is_complete(run.spec):
        what = ", ".join(dict.fromkeys(entry.label for entry in evaluate.entries(run.spec)))
        tasks = "; ".join(_describe_tasks(testbed) for testbed in evaluate.run_testbeds(run.spec))
    else:
        what, tasks = title_of(str(run.spec.get("backbone", ""))), ""
    return {
        "created": run_panel.when(run.created),
        "dataset": shell.dataset_title(str(run.spec.get("dataset", "?"))),
        "study": studies.title_of(run.study),
        "methods": what,
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


def _actions(marked: Sequence[jobs.Run]) -> None:
    """Buttons for the ticked runs, and the number of runs at the same time."""
    compare, cancel, resume, delete, workers = st.columns([1, 1, 1, 1, 1.4], vertical_alignment="bottom")
    comparable = [run.id for run in marked if is_comparable(run)]
    stoppable = [run for run in marked if run.active]
    resumable = [run for run in marked if run.resumable]
    removable = [run for run in marked if not run.active]
    if compare.button(f"Compare {len(comparable) or ''}", disabled=not comparable, width="stretch", type="primary"):
        names = {str(run.spec["dataset"]) for run in marked if run.id in comparable}
        if len(names) == 1 and names <= set(shell.known_names()):
            shell.choose_dataset(next(iter(names)))
        st.session_state["compare_next"] = comparable
        st.rerun()
    if not access.can("run"):
        access.show_denied("run")
        return
    if cancel.button(f"Cancel {len(stoppable) or ''}", disabled=not stoppable, width="stretch"):
        for run in stoppable:
            access.do("run", jobs.cancel, run.id)
        st.rerun()
    if resume.button(f"Resume {len(resumable) or ''}", disabled=not resumable, width="stretch"):
        for run in resumable:
            access.do("run", jobs.resume, run.id)
        st.rerun()
    if delete.button(f"Delete {len(removable) or ''}", disabled=not removable, width="stretch"):
        _confirm_delete([run.id for run in removable])
    now = jobs.n_workers()
    asked = workers.number_input(
        "Runs at the same time",
        1,
        jobs.MAX_WORKERS,
        now,
        help="Each run has its own process; further runs wait in the queue.",
    )
    if asked != now:
        access.do("workers", jobs.set_workers, int(asked))
        st.rerun()


@st.dialog("Delete for good?")
@shell.errors_on_page()
def _confirm_delete(run_ids: list[str]) -> None:
    st.write(f"{len(run_ids)} run{'s' if len(run_ids) > 1 else ''} with all results: {escape(', '.join(run_ids))}.")
    if st.button("Delete", type="primary"):
        for run_id in run_ids:
            access.do("delete", jobs.delete, run_id)
        st.rerun()
