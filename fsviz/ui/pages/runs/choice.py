"""Runs to compare: the multiselect in the sidebar, and the newest runs of one testbed without a choice."""

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


def is_of_dataset(run: jobs.Run, dataset: Dataset) -> bool:
    return bool(run.spec.get("dataset") == dataset.name)


def show_results_of(name: str, runs: Sequence[jobs.Run]) -> None:
    """The results of another dataset from the next run on; of one that is gone, its runs are chosen by themselves."""
    if name in shell.known_names():
        shell.choose_dataset(name)
    else:
        found = [run for run in runs if is_comparable(run) and run.spec["dataset"] == name]
        st.session_state["compare_next"] = [run.id for run in _newest_group(found)]


def warn_of_other_datasets(chosen: Sequence[jobs.Run], dataset: Dataset) -> None:
    """Whose results are shown, where some are not of the chosen dataset."""
    names = list(dict.fromkeys(str(run.spec["dataset"]) for run in chosen if not is_of_dataset(run, dataset)))
    if names:
        titles = ", ".join(shell.dataset_title(name) for name in names)
        with st.container(horizontal=True, vertical_alignment="center"):
            some = "Some" if any(is_of_dataset(run, dataset) for run in chosen) else "These"
            st.warning(
                f"{some} are results of **{escape(titles)}**, which were chosen, and not of {escape(dataset.title)}.",
                icon="📂",
            )
            st.button(f"Show those of {escape(dataset.title)}", on_click=_choose_none, key="own_results")


def _choose_none() -> None:
    st.session_state["runs"] = []


def pick_runs(runs: Sequence[jobs.Run], dataset: Dataset) -> list[jobs.Run]:
    """The evaluations to compare, kept in the link; without a choice the newest ones of one testbed of the dataset."""
    known = {run.id: run for run in sorted(runs, key=lambda run: not is_of_dataset(run, dataset)) if is_comparable(run)}
    if not known:
        return []
    asked = st.session_state.pop("compare_next", None)
    if asked is not None:
        links.drop_from_link("runs")
        links.say(runs=",".join(asked))
    titles = {run.id: _run_title(run) for run in known.values()}
    links.several_of(titles, "runs", about=dataset.name)
    picked = shell.side().multiselect(
        "Runs to compare",
        list(known),
        format_func=lambda run_id: titles.get(run_id, run_id),
        key="runs",
        **controls.BY_TYPING,
        placeholder="the newest of one testbed",
        help="Runs of the same tasks are compared task by task. Those of the chosen dataset come first; others can be "
        "chosen too. The table at the end of the page has all runs.",
    )
    own = [run for run in known.values() if is_of_dataset(run, dataset)]
    return [known[run_id] for run_id in picked if run_id in known] or _newest_group(own)


def show_failed_methods(chosen: Sequence[jobs.Run]) -> None:
    """Why methods of a user have no results in these runs."""
    told = [one for run in chosen for one in (run.summary or {}).get("failed") or [] if isinstance(one, dict)]
    if told:
        sentences = dict.fromkeys(access.without_paths(str(one.get("error", ""))) for one in told)
        st.warning(
            "**Some methods have no results:**\n\n" + "\n".join(f"- {escape(sentence)}" for sentence in sentences),
            icon="⚠️",
        )


def is_comparable(run: jobs.Run) -> bool:
    return run.study == "evaluate" and run.n_done > 0 and evaluate.is_complete(run.spec)


def _run_title(run: jobs.Run) -> str:
    """A readable name of a run: when it began, its dataset and its methods."""
    what = ", ".join(dict.fromkeys(entry.title for entry in evaluate.entries(run.spec)))
    moment = time.strftime("%d %b %H:%M", time.localtime(run.created))
    return f"{moment}, {shell.dataset_title(run.spec['dataset'])}: {what} ({run.id[-4:]})"


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
