"""What the settings ask for: computed while the page waits, or taken from a run in the background."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fsviz import datasets, jobs
from fsviz.records import Dataset, Progress
from fsviz.settings import Unchecked
from fsviz.studies import draw
from fsviz.studies import prediction as study
from fsviz.studies.prediction import Measured
from fsviz.ui.parts import access, behind, run_panel
from fsviz.ui.parts.cached import compute_with_bar, remember
from fsviz.ui.parts.run_panel import duration

PREVIEW = 200
AT_ONCE = 40_000  # images in tasks that are measured while the page waits: a few seconds; more run in the background
SECONDS = {"supervised": 6e-5, "semi": 1.2e-4, "unsupervised": 1e-4}  # per image of a task, on one ordinary core


def find(spec: study.Spec) -> Measured | None:
    """The measured tasks; a preview while a long run is not started or not finished.

    None where a visitor of a shared server asks for more than may be computed for them.
    """
    few = at_once(spec)
    if few is None:
        return None
    if few["n_tasks"] == spec["n_tasks"]:
        return compute_with_bar(study.measure, spec, "Measuring tasks")
    run = run_of(spec)
    if run is not None and run.state == "finished":
        return cells_of_run(run.id, datasets.stamp(spec["dataset"]))[0]
    offer(spec, run, f"Below is a preview of {few['n_tasks']:,} tasks.")
    return compute_with_bar(study.measure, few, "Measuring tasks")


def at_once(spec: study.Spec, cost: float = 1.0) -> study.Spec | None:
    """The spec with as many of its tasks as can be computed while the page waits; None where none may be.

    cost  how many times as long as measuring the tasks once it takes
    """
    images = draw.most_images(spec)
    most = min(AT_ONCE / cost, access.limit("images")) / images
    n_tasks = int(min(spec["n_tasks"], max(10, min(most, access.limit("tasks")))))
    if not access.fits(n_tasks, n_tasks * images):
        return None
    return {**spec, "n_tasks": n_tasks}


def offer(spec: study.Spec, run: jobs.Run | None, otherwise: str, cost: float = 1.0) -> None:
    """How far the run of these settings is, or a button that starts it; `otherwise` says what is shown meanwhile."""
    seconds = cost * spec["n_tasks"] * draw.most_images(spec) * SECONDS[spec["setting"]]
    words = f"**{spec['n_tasks']:,} tasks run in the background**, for about {duration(seconds)}. {otherwise}"
    run_panel.offer({"study": "prediction", **spec}, run, words)


def run_of(spec: study.Spec) -> jobs.Run | None:
    """The newest run with exactly these settings."""
    return jobs.newest(spec, "prediction", aside=study.ASIDE, defaults=study.DEFAULTS)


def answer(spec: study.Spec, preview: bool, cost: float, words: str) -> study.Summary | None:
    """What a question's run found, so far where it is under way; without one a preview of fewer tasks, or nothing."""
    run = run_of(spec)
    if run is not None and run.state == "finished":
        return jobs.results(run.id)
    few = at_once(spec, cost) if preview else None
    if few is not None and few["n_tasks"] == spec["n_tasks"]:
        return compute_with_bar(study.answer, few, words)
    offer(spec, run, f"Below is a preview of {few['n_tasks']:,} tasks." if few else "", cost)
    if run is not None and run.active and run.summary:
        return run.summary
    return compute_with_bar(study.answer, few, words) if few else None


def show_cell(dataset: Dataset, spec: study.Spec, value: str, name: str) -> None:
    """Some tasks of a question's cell, the hardest first, with their outcomes; `name` is where one is in the link."""
    tasks, outcome = compute_with_bar(_tasks_of_cell, {**spec, "cell": value}, "Drawing these tasks again")
    what = study.outcome_name(spec)
    order = np.argsort(outcome, kind="stable")
    notes = {int(t): f"{100 * outcome[t]:.0f}% {what}" for t in order}
    behind.tasks(dataset, tasks, order, notes, f"{json.dumps(dict(spec), sort_keys=True)} {value}", name)


def _tasks_of_cell(spec: Unchecked, progress: Progress) -> Any:
    asked = {name: value for name, value in spec.items() if name != "cell"}
    return study.tasks_of_cell(asked, spec["cell"], progress)


def identity(found: Measured) -> tuple[str, int, str]:
    """Changes when the tasks do: what stands for them in every cache key."""
    return json.dumps(dict(found.spec), sort_keys=True), len(found), datasets.stamp(found.spec["dataset"])


@remember("Reading the run", 6)
def cells_of_run(run_id: str, stamp: str) -> list[Measured]:
    return study.collect(jobs.spec(run_id), jobs.chunks(run_id))


@remember(hashes={Measured: identity})
def correlations(found: Measured) -> dict[str, study.Correlation]:
    return study.correlations(found)


@remember(hashes={Measured: identity})
def left_out(found: Measured) -> dict[str, str]:
    return study.left_out(found)


@remember(hashes={Measured: identity})
def said_of(found: Measured, task: int) -> dict[str, Any]:
    """What was said of the queries of one task."""
    return study.said_of(found, task)
