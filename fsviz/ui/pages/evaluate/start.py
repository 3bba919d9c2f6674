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

COLUMNS = [5.2, 1, 1.3, 1.4]


@st.fragment
@shell.errors_on_page()
def show_start(
    spec: evaluate.EvaluationSpec, testbeds: list[str], shots: tuple[int, ...] | None, stopped: str, note: str
) -> None:
    """One line: the full run, its time, and the button.

    testbeds  further testbeds, a run each
    shots     not None: semantic and uniform tasks in one run, with these numbers of shots (() for that of the spec)
    stopped   a run of these settings that can be resumed, "" for none
    note      how the tasks of the full run differ
    """
    full = spec
    if shots is not None:
        full = cast(evaluate.EvaluationSpec, {name: value for name, value in spec.items() if name != "sampler"})
        full["samplers"] = evaluate.both_samplers(spec["sampler"], shots)
    if stopped and stopped not in st.session_state.get(run_panel.WATCHED, ()):  # those have their own place
        text, resume = st.columns([7.3, 1.4], vertical_alignment="center")
        text.markdown(escape(run_panel.stopped_in_words(jobs.status(stopped))))
        if resume.button("Resume", icon="▶️", width="stretch", key="resume"):
            access.do("run", jobs.resume, stopped)
            run_panel.watch(stopped)
            st.rerun(scope="app")
    text, button, compute, copy = st.columns(COLUMNS, vertical_alignment="center")
    line = text.empty()
    with compute:
        engine = run_panel.where("evaluate", "stretch")
    if button.button("Run", type="primary", width="stretch", key="start"):
        line.markdown("**Queued.** Sampling tasks…")
        run_id = access.do("run", jobs.submit, full, engine)
        for name in testbeds:
            access.do("run", jobs.submit, {**spec, "testbed": name}, engine)
        run_panel.watch(run_id)
        st.toast(f"Run {escape(run_id)} started. You can close the browser.", icon="🚀")
        st.rerun(scope="app")
    export.recipe(command(full))
    with copy.popover("Command", width="stretch"):
        st.code(command(full), language="bash", wrap_lines=True)
    full_run = _describe(spec, full, testbeds)
    line.markdown(f"**Full run: {full_run}**, in the background. Timing a few tasks…")
    seconds = _estimate(spec, len(full.get("samplers", [spec])))
    line.markdown(f"**Full run: {full_run}**, {seconds}. {escape(note)}")


def _describe(spec: evaluate.EvaluationSpec, full: evaluate.EvaluationSpec, testbeds: list[str]) -> str:
    """The methods and tasks of the full run."""
    tasks = f"{spec['sampler']['n_tasks']:,} tasks" if spec.get("sampler") else "all tasks of the testbed"
    tasks += f" in each of {len(full['samplers'])} testbeds" if "samplers" in full else ""
    tasks += f" and {len(testbeds)} more testbed{'s' if len(testbeds) > 1 else ''}" if testbeds else ""
    entries = evaluate.entries(spec)
    methods = escape(entries[0].label) if len(entries) == 1 else f"{len(entries)} methods"
    return f"{methods} × {tasks}"


def show_finished(run: jobs.Run, spec: evaluate.EvaluationSpec) -> None:
    """One line in the place of the start: a finished run of these settings is on the page."""
    export.recipe(command(spec))
    text, link, copy = st.columns([5.2, 2.3, 1.4], vertical_alignment="center")
    when = run_panel.when(run.ended or run.created)
    text.markdown(f"**Full run finished** ({escape(when)}).")
    with link:
        _link_to_runs(run)
    with copy.popover("Command", width="stretch"):
        st.code(command(spec), language="bash", wrap_lines=True)


def _estimate(spec: evaluate.EvaluationSpec, times: int = 1) -> str:
    """The estimated time of so many testbeds, in words, from a trial of a few tasks with each method."""
    rows = _timed(shell.load_dataset(spec["dataset"]), spec)
    total = times * sum(row["seconds"] for row in rows)
    slowest = max(rows, key=lambda row: row["seconds"])
    text = f"about {run_panel.duration(total)} in the background on {escape(_device_name(spec['device']))}"
    if len(rows) > 1 and slowest["seconds"] > 5:
        text += f" (slowest: {escape(slowest['label'])}, {run_panel.duration(slowest['seconds'])})"
    return text


def _device_name(device: str) -> str:
    return next((d["name"] for d in devices() if d["device"] == device), device)


def command(spec: evaluate.EvaluationSpec) -> str:
    """The command line with the same results."""
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
        varied = ("sampler", "n_shot") if len(several) > 1 else ()  # in --side-by-side
        words += flags({name: value for name, value in recipe.arguments.items() if name not in varied}, draw.SETTINGS)
        shots = dict.fromkeys(str(sampler["n_shot"]) for sampler in several if varied)
        words += ["--side-by-side", ",".join(shots)] if varied else []
    return shlex.join([*words, "--device", spec["device"]])


def show_just_finished(on_page: str) -> None:
    """Shows that a run started here has finished, unless its results are on the page."""
    for run_id in sorted(st.session_state.get(run_panel.WATCHED, ())):
        try:
            run = jobs.status(run_id)
        except FsvizError:
            run_panel.forget(run_id)
            continue
        if run.study != "evaluate" or run.state != "finished" or run.id == on_page:
            continue
        text, link, hide = st.columns([4, 1.4, 1], vertical_alignment="center")
        text.success(f"Run {escape(run.id)} finished. Its settings differ from those chosen now.", icon="✅")
        with link:
            _link_to_runs(run)
        if hide.button("Hide", key=f"hide_{run.id}", width="stretch"):
            run_panel.forget(run.id)
            st.rerun()


def _link_to_runs(run: jobs.Run) -> None:
    query = {"dataset": str(run.spec.get("dataset", "")), "runs": run.id}
    shell.page_link("runs", "Compare methods in Runs", query)


@cache_data(most=128)
def _timed(dataset: Dataset, spec: evaluate.EvaluationSpec) -> list[evaluate.EntryTiming]:
    return evaluate.estimate(spec, seconds=0.2)
