"""What the settings ask for: measured while the page waits, or taken from a run in the background."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets, jobs
from fsviz.records import Dataset, Predictions, TaskId
from fsviz.studies import causes as study
from fsviz.studies import comparison, named_tasks
from fsviz.studies.causes import Correlation, Explained, Measured
from fsviz.ui.parts import access, run_panel
from fsviz.ui.parts.cached import compute_with_bar, remember

AT_ONCE = 25_000  # images in tasks that are measured while the page waits: a few seconds; more run in the background
SECONDS = 3.5e-4  # per image of a task, on one ordinary core
ASIDE = ("most",)


def find(dataset: Dataset, spec: study.Spec) -> Measured | None:
    """The measured tasks; the first of them while a long run is not started or not finished.

    None where a visitor of a shared server asks for more than may be computed for them.
    """
    n_tasks, images = _size(dataset, spec)
    few = int(min(n_tasks, max(60, min(AT_ONCE, access.limit("images")) // images), access.limit("tasks")))
    if not access.fits(few, few * images):
        return None
    run = jobs.newest(spec, "causes", aside=ASIDE)
    if run is not None and run.state == "finished":
        found = _of_run(run.id, datasets.stamp(dataset.name))
    else:
        if few < n_tasks:
            seconds = n_tasks * images * SECONDS
            words = (
                f"**All {n_tasks:,} tasks are measured in the background**, for about {run_panel.duration(seconds)}. "
                f"Below are the first {few:,}."
            )
            run_panel.offer({"study": "causes", **spec}, run, words)
        found = compute_with_bar(study.measure, {**spec, "most": few}, "Measuring tasks")
    if spec["run"]:
        found = study.with_answers(found, _answers(spec["run"], spec["backbone"]))
    return found


@remember(most=32)
def _size(dataset: Dataset, spec: study.Spec) -> tuple[int, int]:
    """How many tasks these are, and how many images one has."""
    return study.size(spec)


@remember("Reading the run", 6)
def _of_run(run_id: str, stamp: str) -> Measured:
    return study.collect(jobs.spec(run_id), jobs.chunks(run_id))


@remember("Reading the run", 6)
def _answers(run_id: str, backbone: str) -> dict[str, np.ndarray]:
    """Accuracy of every task by the methods of an evaluation on this backbone."""
    spec = jobs.spec(run_id)
    lines = comparison.lines_of(run_id, spec, jobs.chunks(run_id), jobs.status(run_id).summary)
    return {
        name: line.accuracy for name, line in comparison.named([n for n in lines if n.backbone == backbone]).items()
    }


def identity(found: Measured) -> tuple[str, int, tuple[str, ...], str]:
    """Changes when the tasks or the answers do: what stands for them in every cache key."""
    spec = found.spec
    told = (spec["digest"], len(found), (spec["backbone"], *found.accuracy, *found.measures))
    return (*told, datasets.stamp(spec["dataset"]))


_HASHES: dict[type, Any] = {Measured: identity}


@remember("Learning from four fifths of the tasks what the last fifth will bring", 64, _HASHES)
def explained(found: Measured, method: str, stage: str) -> Explained:
    return study.explained(found, method, stage)


@remember(most=64, hashes=_HASHES)
def correlations(found: Measured, method: str) -> dict[str, Correlation]:
    return study.correlations(found, method)


@remember(most=32, hashes=_HASHES)
def families(found: Measured) -> tuple[pd.DataFrame, list[list[str]]]:
    return study.families(found)


@remember(most=32, hashes=_HASHES)
def ranks(found: Measured) -> dict[str, np.ndarray]:
    return study.ranks(found)


@remember(most=64, hashes=_HASHES)
def answer(dataset: Dataset, found: Measured, method: str, task: int) -> Predictions | None:
    """What a built-in method says of one task, as the only one; None for other methods."""
    return study.answer(dataset, found, method, task)


@remember(most=64, hashes=_HASHES)
def named(dataset: Dataset, found: Measured, task: int) -> TaskId | None:
    """What names a task in links."""
    spec = found.spec
    run = (spec["run"], 0) if spec["run"] else None
    return named_tasks.name_task(dataset, found.tasks, task, found.recipe, [spec["backbone"]], spec["testbed"], run)
