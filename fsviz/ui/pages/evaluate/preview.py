"""The results on the page: of a finished run, or of a few tasks evaluated at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.errors import FsvizError
from fsviz.records import Dataset, Predictions, TaskId, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import REPEATS
from fsviz.sampling.testbeds import load_testbed
from fsviz.settings import RawSettings
from fsviz.studies import evaluate
from fsviz.tasks import draw, task_ids
from fsviz.ui.parts import (
    access,
    recorded,
    shell,
)
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.shell import escape

PREVIEW_TASKS = 200
MIN_TASKS = 20
PREVIEW_SECONDS = 1.0  # a method whose preview would take longer waits for the run


@dataclass(frozen=True)
class RunView:
    """The results on the page: of a finished run of these settings, or of a preview.

    testbed  the tasks whose predictions are loaded: of a run, the first ones
    waiting  chosen methods without results
    run      its id, "" for a preview
    """

    lines: list[run_comparison.MethodRun]
    testbed: Testbed
    answer: Callable[[run_comparison.MethodRun], Predictions]
    task_name: Callable[[run_comparison.MethodRun, int], TaskId | None]
    waiting: list[str] = field(default_factory=list)
    run: str = ""


def earlier_runs(dataset: Dataset, spec: evaluate.EvaluationSpec) -> tuple[jobs.Run | None, jobs.Run | None]:
    """The newest finished run of these settings; without one, the newest that was stopped."""
    runs = [run for run in jobs.list_runs("evaluate") if run.state == "finished" or (run.resumable and run.n_done)]
    for run in sorted(runs, key=lambda run: run.state != "finished"):
        try:
            if evaluate.matching_entries(spec, run.spec, dataset):
                return (run, None) if run.state == "finished" else (None, run)
        except FsvizError:  # the preview reports what is wrong with the settings
            return None, None
    return None, None


def view_of_run(dataset: Dataset, spec: evaluate.EvaluationSpec, run: jobs.Run) -> RunView | None:
    """The results of a finished run of these settings; None if its files are damaged."""
    which = evaluate.matching_entries(spec, run.spec, dataset)
    try:
        by_entry = {line.entry: line for line in recorded.method_runs(run)}
        lines = [by_entry[i] for i in which]
        _, tasks = recorded.predictions_of(lines[0])
    except (FsvizError, KeyError):
        return None
    part = evaluate.run_testbeds(run.spec)[evaluate.entries(run.spec)[which[0]].testbed]
    first = slice(0, recorded.MAX_PREDICTED)
    return RunView(
        lines,
        Testbed(part["testbed_name"], tasks.take(first), part["recipe"]),
        lambda line: recorded.predictions_of(line)[0].take(first),
        lambda line, task: recorded.task_id(dataset, line, task),
        run=run.id,
    )


def preview_of(dataset: Dataset, spec: evaluate.EvaluationSpec) -> RunView | None:
    """A real, small evaluation of the chosen methods; None, with a sentence on the page, if it is impossible."""
    part = _task_part(spec)
    if spec.get("sampler"):
        n_tasks = _n_preview_tasks(spec["sampler"])
        if not access.within_limits(n_tasks, n_tasks * draw.max_images(spec["sampler"])):
            return None
    try:
        testbed = _testbed(dataset, part)
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        _offer_feasible(dataset, spec)
        return None
    tasks = testbed.tasks
    if not access.within_limits(len(tasks), tasks.support.size + tasks.query.size):
        return None
    lines: list[run_comparison.MethodRun] = []
    answers, waiting, spent = {}, [], 0.0
    for which, entry in enumerate(evaluate.entries(spec)):
        guess = evaluate.guess_seconds(dataset, entry.backbone, entry.method, entry.parameters, testbed.tasks)
        spent += guess
        if (guess > PREVIEW_SECONDS and len(lines)) or spent > access.limit("seconds"):
            waiting.append(entry.label)
            continue
        with st.spinner(f"{escape(entry.label)} on {len(testbed.tasks)} tasks…"):
            answer = _predict(dataset, part, entry.backbone, entry.method, dict(entry.parameters))
        lines.append(run_comparison.preview_run(entry, answer, testbed, which=which))
        answers[lines[-1].key] = answer
    if not lines:
        st.info("Too slow for visitors of this shared server. Choose a faster method.", icon="⏳")
        return None
    return RunView(
        lines,
        testbed,
        lambda line: answers[line.key],
        lambda line, task: _task_id(dataset, spec, testbed, task),
        list(dict.fromkeys(waiting)),
    )


def _task_id(dataset: Dataset, spec: evaluate.EvaluationSpec, testbed: Testbed, task: int) -> TaskId | None:
    """The id of a task of the preview in links; in a saved testbed, its position there."""
    with suppress(FsvizError):
        if spec.get("testbed"):
            saved = load_testbed(str(spec["testbed"]), dataset)
            at = int(evaluate.spread_evenly(len(saved.tasks), PREVIEW_TASKS)[task])
            return task_ids.name_task(dataset, saved.tasks, at, saved.recipe, saved=str(spec["testbed"]))
        return task_ids.name_task(dataset, testbed.tasks, task, testbed.recipe, spec["backbones"])
    return None


def coarsity_note(dataset: Dataset, testbed: Testbed, n_tasks: int) -> str:
    """A sentence if the tasks of the full run differ in coarsity from the preview, "" otherwise."""
    if testbed.recipe.get("sampler") not in SAMPLERS or n_tasks <= len(testbed.tasks):
        return ""
    median = _median_coarsity(dataset, draw.recipe_of(testbed, dataset), n_tasks)
    here = float(np.median(testbed.tasks.measures.get("coarsity", np.nan)))
    if median is None or not np.isfinite(here) or abs(median - here) < 0.02 * here:
        return ""
    return f"Its median coarsity is {median:.1f}, here {here:.1f}; “{REPEATS.title}” makes them equal."


def _offer_feasible(dataset: Dataset, spec: evaluate.EvaluationSpec) -> None:
    """Shows a button that sets values that fit."""
    requested: dict[str, Any] = {name: spec.get("sampler", {}).get(name) for name in ("n_way", "n_shot", "n_query")}
    if None in requested.values():
        return
    fits: Mapping[str, Any] = evaluate.feasible_sampler(
        dataset, spec["backbones"][0], spec["sampler"]["split"], **requested
    )
    changes = {name: fits[name] for name, value in requested.items() if fits[name] != value}
    if changes:
        words = escape(shell.with_setting_titles(", ".join(f"{name} {value}" for name, value in changes.items())))
        st.button(f"Use {words}", on_click=st.session_state.update, args=(changes,), type="primary")


def _task_part(spec: evaluate.EvaluationSpec) -> dict[str, Any]:
    """The part of a spec that decides the tasks of a preview; their number in the run does not."""
    part: dict[str, Any] = {name: spec[name] for name in ("testbed", "sampler", "seed", "backbones") if name in spec}
    if "sampler" in part:
        part["sampler"] = {**part["sampler"], "n_tasks": _n_preview_tasks(part["sampler"])}
    return part


def _n_preview_tasks(sampler: draw.TaskSpec) -> int:
    """Number of tasks of a preview: fewer, but at least MIN_TASKS, if visitors may not request so many images."""
    return int(max(MIN_TASKS, min(PREVIEW_TASKS, access.limit("images") / draw.max_images(sampler))))


@cache_data()
def _testbed(dataset: Dataset, part: dict[str, Any]) -> Testbed:
    return evaluate.preview_testbed(dataset, cast(evaluate.EvaluationSpec, part), PREVIEW_TASKS)


@cache_data(most=64)
def _median_coarsity(dataset: Dataset, recipe: draw.Recipe, n_tasks: int) -> float | None:
    """Median coarsity of n_tasks tasks of a recipe, if dropped duplicates change it; else None."""
    drops = any(s.name == REPEATS.name for s in SAMPLERS[recipe.sampler].settings)
    if not drops or recipe.settings.get(REPEATS.name):
        return None
    testbed = draw.sample_testbed(
        dataset, draw.recipe_for(dataset, **{**recipe.values, "n_tasks": n_tasks, "n_shot": 0})
    )
    coarsity = testbed.tasks.measures.get("coarsity")
    return None if coarsity is None else float(np.median(coarsity))


@cache_data(most=256)
def _predict(
    dataset: Dataset, part: dict[str, Any], backbone: str, method: str, parameters: RawSettings
) -> Predictions:
    return evaluate.predict_tasks(dataset, backbone, method, parameters, _testbed(dataset, part).tasks)
