"""The line that starts, resumes or links to the full run, with its time and its command."""

from __future__ import annotations

import shlex
from typing import Any, cast

import streamlit as st

from fsviz import jobs
from fsviz.errors import FsvizError
from fsviz.methods import METHODS
from fsviz.records import Dataset
from fsviz.settings import to_args as flags
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.ui.pages.evaluate.settings import devices
from fsviz.ui.parts import (
    access,
    export,
    run_panel,
    shell,
)
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.shell import escape


@st.fragment
@shell.errors_on_page()
def show_start(spec: evaluate.EvaluationSpec, more: list[str], shots: tuple[int, ...] | None, stopped: str) -> None:
    """One line: what the whole run is, how long it would take, and the button.

    stopped  a run of these settings that can be resumed, "" for none
    more   further testbeds, a run each
    shots  not None: semantic and uniform tasks in one run, with these numbers of shots (the spec's own where none)
    """
    whole = spec
    if shots is not None:
        whole = cast(evaluate.EvaluationSpec, {name: value for name, value in spec.items() if name != "sampler"})
        whole["samplers"] = evaluate.both_samplers(spec["sampler"], shots)
    with st.container(border=True):
        if stopped and stopped not in st.session_state.get(run_panel.WATCHED, ()):  # those have their own place
            words, resume = st.columns([5.4, 1.4], vertical_alignment="center")
            words.markdown(escape(run_panel.stopped_in_words(jobs.status(stopped))))
            if resume.button("Resume", icon="▶️", width="stretch", key="resume"):
                access.do("run", jobs.resume, stopped)
                run_panel.watch(stopped)
                st.rerun(scope="app")
        text, button, copy = st.columns([4, 1.4, 1.4], vertical_alignment="center")
        line = text.empty()
        with copy:
            engine = run_panel.where("evaluate", "stretch")
        if button.button("Run", type="primary", width="stretch", key="start"):
            line.markdown("**▶️ Queued.** Drawing and freezing the tasks, then the run starts by itself…")
            run_id = access.do("run", jobs.submit, whole, engine)
            for name in more:
                access.do("run", jobs.submit, {**spec, "testbed": name}, engine)
            run_panel.watch(run_id)
            st.toast(f"Run {escape(run_id)} is on its way. You may close the browser.", icon="🚀")
            st.rerun(scope="app")
        export.recipe(command(whole))
        with copy.popover("Command", width="stretch"):
            st.code(command(whole), language="bash", wrap_lines=True)
        tasks = f"{spec['sampler']['n_tasks']:,} tasks" if spec.get("sampler") else "the whole testbed"
        tasks += f" in each of {len(whole['samplers'])} testbeds" if "samplers" in whole else ""
        tasks += f" and {len(more)} more testbed{'s' if len(more) > 1 else ''} after it" if more else ""
        entries = evaluate.entries(spec)
        what = escape(entries[0].label) if len(entries) == 1 else f"{len(entries)} methods"
        line.markdown(f"**The whole run:** {what} on {tasks}, in the background. Timing a few tasks…")
        told = _estimate(spec, len(whole.get("samplers", [spec])))
        line.markdown(f"**The whole run:** {what} on {tasks}, in the background: {told}.")


def show_finished(run: jobs.Run, spec: evaluate.EvaluationSpec) -> None:
    """One line in the place of the start: a run of these settings is finished, and the page shows it."""
    export.recipe(command(spec))
    with st.container(border=True):
        text, link, copy = st.columns([4, 1.8, 1.4], vertical_alignment="center")
        when = run_panel.when(run.ended or run.created)
        text.markdown(f"**✅ Finished {escape(when)}:** this page shows the whole run {escape(run.id)}.")
        with link:
            _link_to_runs(run)
        with copy.popover("Command", width="stretch"):
            st.code(command(spec), language="bash", wrap_lines=True)


def _estimate(spec: evaluate.EvaluationSpec, times: int = 1) -> str:
    """How long so many testbeds would take in words, from a trial of a few tasks with each method."""
    rows = _timed(shell.load_dataset(spec["dataset"]), spec)
    total = times * sum(row["seconds"] for row in rows)
    slowest = max(rows, key=lambda row: row["seconds"])
    text = f"about **{run_panel.duration(total)}** on {escape(_device_name(spec['device']))}, from a quick trial"
    if len(rows) > 1 and slowest["seconds"] > 5:
        text += f" (the slowest, {escape(slowest['label'])}, {run_panel.duration(slowest['seconds'])})"
    return text


def _device_name(device: str) -> str:
    return next((d["name"] for d in devices() if d["device"] == device), device)


def command(spec: evaluate.EvaluationSpec) -> str:
    """The command line that runs the same."""
    words = ["fsviz", "evaluate", spec["dataset"]]
    words += ["--backbone", ",".join(spec["backbones"])]
    words += ["--methods", ",".join(m["name"] for m in spec["methods"])]
    for method in spec["methods"]:
        defaults = {setting.name: setting.default for setting in METHODS[method["name"]].settings}
        for name, value in method["parameters"].items():
            if value != defaults[name]:
                words += ["--set", f"{method['name']}.{name}={value}"]
    if spec.get("testbed"):
        words += ["--testbed", spec["testbed"]]
    else:
        several = spec.get("samplers") or [spec["sampler"]]
        recipe = draw.recipe_for(
            shell.load_dataset(spec["dataset"]), **cast(dict[str, Any], several[0]), seed=spec["seed"]
        )
        beside = ("sampler", "n_shot") if len(several) > 1 else ()  # what --side-by-side says
        words += flags({name: value for name, value in recipe.arguments.items() if name not in beside}, draw.SETTINGS)
        shots = dict.fromkeys(str(sampler["n_shot"]) for sampler in several if beside)
        words += ["--side-by-side", ",".join(shots)] if beside else []
    return shlex.join([*words, "--device", spec["device"]])


def show_just_finished(shown: str) -> None:
    """Says that a run which was started here has ended, unless it is what the page shows."""
    for run_id in sorted(st.session_state.get(run_panel.WATCHED, ())):
        try:
            run = jobs.status(run_id)
        except FsvizError:
            run_panel.forget(run_id)
            continue
        if run.study != "evaluate" or run.state != "finished" or run.id == shown:
            continue
        left, middle, right = st.columns([4, 1.4, 1], vertical_alignment="center")
        left.success(f"Run {escape(run.id)} is finished. It is of other settings than those chosen now.", icon="✅")
        with middle:
            _link_to_runs(run)
        if right.button("Hide", key=f"hide_{run.id}", width="stretch"):
            run_panel.forget(run.id)
            st.rerun()


def _link_to_runs(run: jobs.Run) -> None:
    asked = {"dataset": str(run.spec.get("dataset", "")), "runs": run.id}
    shell.page_link("runs", "See the whole comparison", asked)


@cache_data(most=128)
def _timed(dataset: Dataset, spec: evaluate.EvaluationSpec) -> list[evaluate.EntryTiming]:
    return evaluate.estimate(spec, seconds=0.2)
