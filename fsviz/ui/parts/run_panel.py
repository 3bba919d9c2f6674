"""Runs on pages: those under way, the offer to start one, and numbers with their intervals."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import streamlit as st

from fsviz import jobs, studies
from fsviz.analyses.run_comparison import CI_UNITS
from fsviz.errors import BadInput
from fsviz.jobs import engines
from fsviz.records import HeadlineNumber
from fsviz.reports.tables import TOP5_FROM
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
START = "Start the run"
_ENGINES = {engines.LOCAL: "this machine", engines.RAY: "a Ray cluster"}
SoFar: TypeAlias = Callable[[Any], object] | None


def most_accurate(top: Any, over: str, n_methods: int, n_missing: int = 0) -> HeadlineNumber:
    """The accuracy of the best row of a table, with its name; with top-5 accuracy if that says something. While methods
    are missing nobody knows which is the most accurate."""
    title = f"Best of {n_methods} of {n_methods + n_missing} methods" if n_missing else "Most accurate"
    top5 = f", top-5 {top['top5']:.1f}%" if top["n_way"] >= TOP5_FROM else ""
    note, text = f"{top['name']}{top5}", f"Mean accuracy with its 95% interval {CI_UNITS[over]}."
    return HeadlineNumber.around("accuracy", title, top["accuracy"], top.get("ci95"), note=note, help=text)


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 1:
        return "a second or less"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


# --- runs under way ----------------------------------------------------------------------------------------------


def watch(run_id: str) -> None:
    """From now on the pages of this visitor say how a run ended, and offer to resume it."""
    st.session_state.setdefault(WATCHED, set()).add(run_id)


def forget(run_id: str) -> None:
    """Says nothing more of a run that has ended."""
    st.session_state.setdefault(WATCHED, set()).discard(run_id)


def active_runs(key: str, study: str | None = None) -> None:
    """Progress of every run under way, told again each second; in its place, how one that was watched was stopped.

    Runs that others start, or that end, change the whole page: also an idle page looks every few seconds.
    """
    known = _states(jobs.list_runs(study))
    busy = any(state in ("queued", "running") for _, state in known)
    st.fragment(_poll, run_every=1.0 if busy else 4.0)(key, study, known)


@errors_on_page()
def _poll(key: str, study: str | None, known: tuple[tuple[str, str], ...]) -> None:
    runs = jobs.list_runs(study)
    for run in runs:  # before the page starts over, so that no click on a button is lost
        if run.active:
            show_progress(run, key)
        elif run.resumable and run.state != "finished" and run.id in st.session_state.get(WATCHED, ()):
            show_stopped(run, key)
    if _states(runs) != known:
        st.rerun(scope="app")


def _states(runs: Sequence[jobs.Run]) -> tuple[tuple[str, str], ...]:
    return tuple((run.id, run.state) for run in runs)


def show_progress(run: jobs.Run, key: str) -> None:
    """One run under way: how far, how long still, accuracy so far with its interval, and a way to stop it."""
    with st.container(border=True, key=f"{key}_{run.id}"):
        left, right = st.columns([5, 1], vertical_alignment="center")
        title = f"{studies.title_of(run.study)} of {dataset_title(str(run.spec.get('dataset', '?')))}"
        left.markdown(f"**{STATES[run.state]}** · {escape(title)} · run {code(run.id)}")
        if access.can("run") and right.button("Cancel", key=f"{key}_cancel_{run.id}", width="stretch"):
            with st.spinner("Stopping the run. What is finished is kept."):
                access.do("run", jobs.cancel, run.id)
            watch(run.id)
            st.rerun(scope="app")
        text = run.message or "starting"
        if (engine := jobs.engine_of(run)) != jobs.Engine():
            text += f" · on {engine}"
        if run.state == "queued" and not run.n_done:  # one that has begun says itself why it waits
            text = f"waits for a free worker ({jobs.n_workers()} at a time); short runs go first"
        elif run.n_done:
            text += f" · about {duration(run.seconds_left)} left"
        st.progress(min(1.0, run.share_done), text=escape(text))
        results = (run.summary or {}).get("results") or []
        if results and "accuracy" in results[0]:
            cells = " &nbsp;·&nbsp; ".join(
                f"{escape(r['label'])} **{r['accuracy']:.1f}{half_width(r.get('ci95'))}%** ({r['n_tasks']:,} tasks)"
                for r in results
            )
            st.caption(f"Accuracy so far, ± over tasks of these images: {cells}")


def show_stopped(run: jobs.Run, key: str) -> None:
    """A run that was stopped or has failed: why, what is kept, and a way to go on with it."""
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
    """How a run ended that is not finished, and what is kept of it."""
    ended = "has failed" if run.state == "failed" else f"was {run.state}"
    kept = f"{run.share_done:.0%} is done and kept." if run.n_done else "None of its parts is done."
    return " ".join(filter(None, (f"Run {run.id} {ended}.", access.without_paths(run.error), kept)))


def offer(spec: RawSettings, run: jobs.Run | None, words: str, so_far: SoFar = None, start: str = START) -> None:
    """How far the run of a spec is, or what it would be in Markdown, and the buttons that start it or go on with it.

    run     the run of these settings, where there is one
    so_far  shows the summary of a run under way
    """
    with st.container(border=True):
        if run is not None and run.active:
            _watch(run.id, so_far)
            return
        if run is not None:
            told = (run.error or run.message).rstrip(".").removeprefix(run.state).lstrip("; ")
            words += f" An earlier run is {escape(run.state)}" + (f": {escape(told)}." if told else ".")
        st.markdown(words)
        access.show_denied("run")
        if not access.can("run"):
            return
        key = json.dumps(spec, sort_keys=True)
        with st.container(horizontal=True):
            if run is not None and run.resumable and st.button("Go on with it", icon="▶️", key=f"resume {key}"):
                access.do("run", jobs.resume, run.id)
                st.rerun()
            started = st.button(start, type="primary", icon="▶️", key=f"start {key}")
            engine = where(key)
            if started:
                access.do("run", jobs.submit, dict(spec), engine)
                st.rerun()


def where(key: str, width: Any = "content") -> jobs.Engine:
    """Which machines compute a run: a choice beside the button that starts it, where there is more than one.

    An address makes this machine call another one: visitors of a shared server have no such choice.
    """
    if len(engines.available()) == 1 or not access.alone():
        return jobs.Engine()
    with st.popover("Where", icon=":material/dns:", key=f"where {key}", width=width):
        name = st.radio(
            "Where it runs", engines.available(), format_func=_ENGINES.get, key=f"engine {key}", horizontal=True
        )
        if name == engines.LOCAL:
            return jobs.Engine()
        address = st.text_input(
            "Address of the cluster",
            "auto",
            key=f"address {key}",
            help="HOST:PORT as `ray start --head` told it; auto: the cluster that this machine is part of. Every "
            "machine must see the workspace under the same path.",
        )
        try:
            return engines.chosen(name, address.strip())
        except BadInput as error:
            st.error(escape(str(error)), icon="⚠️")
            return jobs.Engine(name, address)  # refused where it is used


@st.fragment(run_every=1.0)
@errors_on_page()
def _watch(run_id: str, so_far: SoFar) -> None:
    """How far a run is, with a way to stop it; the page starts over when it ends."""
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
    told = [escape(run.message)] if run.message and run.message != parts else []
    st.progress(run.share_done, text=" · ".join([*told, parts]))


def half_width(ci95: float | None, digits: int = 1, times: float = 1.0) -> str:
    """The half width of an interval behind its mean; nothing where it is not known."""
    return f" ± {times * ci95:.{digits}f}" if ci95 is not None and math.isfinite(ci95) else ""


def when(moment: float) -> str:
    """A time in words: today by the clock, older by the date."""
    local = time.localtime(moment)
    same_day = time.strftime("%Y%m%d", local) == time.strftime("%Y%m%d")
    return time.strftime("%H:%M:%S" if same_day else "%d %b %Y, %H:%M", local)
