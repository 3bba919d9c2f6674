"""Runs to compare: the multiselect in the sidebar; by default the newest runs of one testbed."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from fsviz import jobs
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.studies import evaluate
from fsviz.ui.parts import (
    access,
    controls,
    links,
    recorded,
    shell,
)
from fsviz.ui.parts.shell import escape

COMPARISON = "Comparison"  # the section that results open with


def is_of_dataset(run: jobs.Run, dataset: Dataset) -> bool:
    return bool(run.spec.get("dataset") == dataset.name)


def show_results_of(name: str, runs: Sequence[jobs.Run]) -> None:
    """Selects another dataset from the next run on; of a deleted one, its runs."""
    if name in shell.known_names():
        shell.choose_dataset(name)
    else:
        runs_of_dataset = [run for run in runs if is_comparable(run) and run.spec["dataset"] == name]
        st.session_state["compare_next"] = [run.id for run in _newest_group(runs_of_dataset)]


def warn_of_other_datasets(selected_runs: Sequence[jobs.Run], dataset: Dataset) -> None:
    """Names the datasets of the results if some are not of the selected dataset."""
    names = list(dict.fromkeys(str(run.spec["dataset"]) for run in selected_runs if not is_of_dataset(run, dataset)))
    if names:
        titles = ", ".join(shell.dataset_title(name) for name in names)
        with st.container(horizontal=True, vertical_alignment="center"):
            some = "Some" if any(is_of_dataset(run, dataset) for run in selected_runs) else "All"
            st.warning(f"{some} of these runs are on **{escape(titles)}**, not {escape(dataset.title)}.", icon="📂")
            st.button(f"Show runs on {escape(dataset.title)}", on_click=_choose_none, key="own_results")


def _choose_none() -> None:
    st.session_state["runs"] = []


def pick_runs(runs: Sequence[jobs.Run], dataset: Dataset) -> list[jobs.Run]:
    """The evaluations to compare, in the link; by default the newest ones of one testbed of the dataset."""
    by_id = {run.id: run for run in sorted(runs, key=lambda run: not is_of_dataset(run, dataset)) if is_comparable(run)}
    if not by_id:
        return []
    requested = st.session_state.pop("compare_next", None)
    if requested is not None:
        links.drop_from_link("runs")
        links.say(runs=",".join(requested))
        st.session_state["show"] = COMPARISON
    titles = {run.id: _run_title(run) for run in by_id.values()}
    links.several_of(titles, "runs", about=dataset.name)
    picked = shell.side().multiselect(
        "Runs",
        list(by_id),
        format_func=lambda run_id: titles.get(run_id, run_id),
        key="runs",
        **controls.BY_TYPING,
        placeholder="latest testbed",
        help="Runs of the same tasks are compared task by task. Runs of this dataset come first.",
    )
    own = [run for run in by_id.values() if is_of_dataset(run, dataset)]
    return [by_id[run_id] for run_id in picked if run_id in by_id] or _newest_group(own)


def show_failed_methods(selected_runs: Sequence[jobs.Run]) -> None:
    """Shows why methods of a user have no results in these runs."""
    failures = [
        row for run in selected_runs for row in (run.summary or {}).get("failed") or [] if isinstance(row, dict)
    ]
    if failures:
        sentences = dict.fromkeys(access.without_paths(str(row.get("error", ""))) for row in failures)
        st.warning(
            "**Some methods have no results:**\n\n" + "\n".join(f"- {escape(sentence)}" for sentence in sentences),
            icon="⚠️",
        )


def is_comparable(run: jobs.Run) -> bool:
    return run.study == "evaluate" and run.n_done > 0 and evaluate.is_complete(run.spec)


def _run_title(run: jobs.Run) -> str:
    """A readable title of a run: its name if it has one, its start, dataset and methods."""
    methods = ", ".join(dict.fromkeys(entry.title for entry in evaluate.entries(run.spec)))
    moment = time.strftime("%d %b %H:%M", time.localtime(run.created))
    title = f"{moment}, {shell.dataset_title(run.spec['dataset'])}: {methods} ({run.id[-4:]})"
    return f"{run.name} · {title}" if run.name else title


def _newest_group(evaluations: Sequence[jobs.Run]) -> list[jobs.Run]:
    """The newest evaluation that can be read and the others of the same tasks."""
    if not evaluations:
        return []
    finished = [run for run in evaluations if run.state == "finished"] or list(evaluations)
    digest = next((run for run in finished if _is_readable(run)), finished[0]).spec["tasks"]["digest"]
    return [run for run in finished if run.spec["tasks"]["digest"] == digest][:6]


def _is_readable(run: jobs.Run) -> bool:
    try:
        return bool(recorded.method_runs(run))
    except FsvizError:
        return False
