"""Runs on pages: those under way, the offer to start one, and numbers with their intervals."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import streamlit as st

from fsviz import jobs, studies
from fsviz.errors import BadInput
from fsviz.jobs import engines
from fsviz.settings import RawSettings
from fsviz.text import code
from fsviz.ui.parts import access
from fsviz.ui.parts.shell import dataset_title, errors_on_page, escape

WATCHED = "_watched_runs"  # runs that were started, resumed or cancelled here, by their ids
STATES = {
    "queued": "⏳ waiting",
    "running": "▶️ running",
    "finished": "✅ finished",
    "cancelled": "⏹️ cancelled",
    "failed": "⚠️ failed",
    "interrupted": "⏸️ interrupted",
    "damaged": "💥 damaged",
}
START = "Run"
_ENGINES = {engines.LOCAL: "this machine", engines.RAY: "a Ray cluster"}
SoFar: TypeAlias = Callable[[Any], object] | None


def duration(seconds: float) -> str:
    """A duration in words."""
    if seconds < 1:
        return "1 s or less"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


# --- runs under way ----------------------------------------------------------------------------------------------


def watch(run_id: str) -> None:
    """Makes the pages of this visitor report how a run ends, and offer to resume it."""
    st.session_state.setdefault(WATCHED, set()).add(run_id)


def forget(run_id: str) -> None:
    """Hides a run that has ended."""
    st.session_state.setdefault(WATCHED, set()).discard(run_id)


def active_runs(key: str, study: str | None = None) -> None:
    """Shows the progress of every active run each second, and how a watched run was stopped.

    A run that starts or ends changes the whole page, so an idle page checks every few seconds.
    """
    states = _states(jobs.list_runs(study))
    busy = any(state in ("queued", "running") for _, state in states)
    st.fragment(_poll, run_every=1.0 if busy else 4.0)(key, study, states)


@errors_on_page()
def _poll(key: str, study: str | None, states: tuple[tuple[str, str], ...]) -> None:
    runs = jobs.list_runs(study)
    for run in runs:  # before the page starts over, so that no click on a button is lost
        if run.active:
            show_progress(run, key)
        elif run.resumable and run.state != "finished" and run.id in st.session_state.get(WATCHED, ()):
            show_stopped(run, key)
    if _states(runs) != states:
        st.rerun(scope="app")


def _states(runs: Sequence[jobs.Run]) -> tuple[tuple[str, str], ...]:
    return tuple((run.id, run.state) for run in runs)


def show_progress(run: jobs.Run, key: str) -> None:
    """Shows one active run: progress, time left, accuracy so far with its interval, and a button to cancel it."""
    with st.container(border=True, key=f"{key}_{run.id}"):
        left, right = st.columns([5, 1], vertical_alignment="center")
        title = f"{studies.title_of(run.study)} of {dataset_title(str(run.spec.get('dataset', '?')))}"
        left.markdown(f"**{STATES[run.state]}** · {escape(title)} · run {code(run.id)}")
        if access.can("run") and right.button("Cancel", key=f"{key}_cancel_{run.id}", width="stretch"):
            with st.spinner("Stopping. Finished parts are saved."):
                access.do("run", jobs.cancel, run.id)
            watch(run.id)
            st.rerun(scope="app")
        text = run.message or "starting"
        if (engine := jobs.engine_of(run)) != jobs.Engine():
            text += f" · on {engine}"
        if run.state == "queued" and not run.n_done:  # one that has begun says itself why it waits
            text = f"Queued: {jobs.n_workers()} runs at a time, short ones first"
        elif run.n_done:
            text += f" · about {duration(run.seconds_left)} left"
        st.progress(min(1.0, run.share_done), text=escape(text))
        results = (run.summary or {}).get("results") or []
        if results and "accuracy" in results[0]:
            cells = " &nbsp;·&nbsp; ".join(
                f"{escape(r['label'])} **{r['accuracy']:.1f}{half_width(r.get('ci95'))}%** ({r['n_tasks']:,} tasks)"
                for r in results
            )
            st.caption(f"Accuracy so far, 95% CI over tasks: {cells}")


def show_stopped(run: jobs.Run, key: str) -> None:
    """Shows a run that was stopped or failed: why, what is saved, and a button to resume it."""
    with st.container(border=True, key=f"{key}_{run.id}"):
        left, middle, right = st.columns([4, 1, 1], vertical_alignment="center")
        title = f"{studies.title_of(run.study)} of {dataset_title(str(run.spec.get('dataset', '?')))}"
        left.markdown(f"**{STATES[run.state]}** · {escape(title)} · run {code(run.id)}")
        if access.can("run") and middle.button(
            "Resume", key=f"{key}_resume_{run.id}", type="primary", icon="▶️", width="stretch"
        ):
            access.do("run", jobs.resume, run.id)
            st.rerun(scope="app")
        if right.button("Hide", key=f"{key}_hide_{run.id}", width="stretch"):
            forget(run.id)
            st.rerun(scope="app")
        st.caption(escape(stopped_in_words(run)))


def stopped_in_words(run: jobs.Run) -> str:
    """A sentence on how an unfinished run ended and how much of it is saved."""
    ended = "failed" if run.state == "failed" else f"was {run.state}"
    saved = f"{run.share_done:.0%} is saved." if run.n_done else "No part is finished."
    return " ".join(filter(None, (f"Run {run.id} {ended}.", access.without_paths(run.error), saved)))


def offer(spec: RawSettings, run: jobs.Run | None, words: str, so_far: SoFar = None, start: str = START) -> None:
    """Shows the progress of the run of a spec, or `words` in Markdown and the buttons that start or resume it.

    run     the run of these settings, if there is one
    so_far  shows the summary of a run under way
    """
    with st.container(border=True):
        if run is not None and run.active:
            _watch(run.id, so_far)
            return
        if run is not None:
            problem = (run.error or run.message).rstrip(".").removeprefix(run.state).lstrip("; ")
            words += f" Previous run: {escape(run.state)}" + (f": {escape(problem)}." if problem else ".")
        st.markdown(words)
        access.show_denied("run")
        if not access.can("run"):
            return
        key = json.dumps(spec, sort_keys=True)
        with st.container(horizontal=True):
            if run is not None and run.resumable and st.button("Resume", icon="▶️", key=f"resume {key}"):
                access.do("run", jobs.resume, run.id)
                st.rerun()
            started = st.button(start, type="primary", icon="▶️", key=f"start {key}")
            engine = where(key)
            if started:
                access.do("run", jobs.submit, dict(spec), engine)
                st.rerun()


def where(key: str, width: Any = "content") -> jobs.Engine:
    """The machines that compute a run, picked next to the button that starts it if there are several.

    An address makes this machine call another one, so visitors of a shared server cannot choose.
    """
    if len(engines.available()) == 1 or not access.alone():
        return jobs.Engine()
    with st.popover("Compute", icon=":material/dns:", key=f"where {key}", width=width):
        name = st.radio("Run on", engines.available(), format_func=_ENGINES.get, key=f"engine {key}", horizontal=True)
        if name == engines.LOCAL:
            return jobs.Engine()
        address = st.text_input(
            "Cluster address",
            "auto",
            key=f"address {key}",
            help="HOST:PORT printed by `ray start --head`, or auto. All machines must share the workspace path.",
        )
        try:
            return engines.pick(name, address.strip())
        except BadInput as error:
            st.error(escape(str(error)), icon="⚠️")
            return jobs.Engine(name, address)  # refused where it is used


@st.fragment(run_every=1.0)
@errors_on_page()
def _watch(run_id: str, so_far: SoFar) -> None:
    """Shows the progress of a run and a button to cancel it; the page reruns when it ends."""
    run = jobs.status(run_id)
    if not run.active:
        st.rerun()
    show_parts_done(run)
    if so_far is not None and run.summary:
        so_far(run.summary)
    if access.can("run") and st.button("Cancel", key=f"cancel_{run_id}", icon="⏹️"):
        access.do("run", jobs.cancel, run_id)
        st.rerun()


def show_parts_done(run: jobs.Run) -> None:
    parts = f"{run.n_done:,} of {run.n_chunks:,} parts"
    texts = [escape(run.message)] if run.message and run.message != parts else []
    st.progress(run.share_done, text=" · ".join([*texts, parts]))


def half_width(ci95: float | None, digits: int = 1, times: float = 1.0) -> str:
    """The half width of an interval, to follow its mean; "" if not available."""
    return f" ± {times * ci95:.{digits}f}" if ci95 is not None and math.isfinite(ci95) else ""


def when(moment: float) -> str:
    """A time in words: today by the clock, older by the date."""
    local = time.localtime(moment)
    same_day = time.strftime("%Y%m%d", local) == time.strftime("%Y%m%d")
    return time.strftime("%H:%M:%S" if same_day else "%d %b %Y, %H:%M", local)
