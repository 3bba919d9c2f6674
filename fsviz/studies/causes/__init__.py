"""Why are these tasks hard? Every measure of every task, compared with the accuracy of methods.

    tasks -> measures (fsviz.difficulty.measures) and accuracies -> correlations, families of measures
          -> regression on held-out tasks -> share of the variation per cause -> main cause

Tasks are sampled (see fsviz.tasks.draw), or come from a "testbed", or from an evaluation ("run"), whose accuracies are
then used too; "most" limits them to the first ones. A chunk holds every measure and every accuracy of its tasks.

The measures are from all five papers; comparing the causes with each other is new here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from fsviz import datasets, evaluation, features
from fsviz.difficulty.measures import MEASURES, STAGE_TITLES
from fsviz.errors import BadInput
from fsviz.evaluation import VarianceExplained, VarianceShare
from fsviz.methods import METHODS
from fsviz.records import Dataset, Features, Tasks
from fsviz.settings import RawSettings
from fsviz.studies import evaluate, task_measures
from fsviz.studies.causes.explaining import (
    ALIKE,
    calibration,
    cause_name,
    causes_at,
    correlations,
    describe_accuracy,
    explained,
    explained_numbers,
    families,
    headline,
    headline_numbers,
    mean,
    sampling_noise,
    strongest_measure,
    summary,
    unexplainable,
)
from fsviz.studies.causes.selection import (
    ACCURACY,
    BRUSH,
    EXPECTED,
    RANK,
    as_table,
    brush_text,
    class_names,
    describe_selection,
    extremes,
    predictions,
    ranks,
    select_tasks,
    selection_breakdown,
)
from fsviz.studies.causes.spec import (
    METHODS_EXPLAINED,
    RUN,
    SETTINGS,
    STAGE,
    TASK_DEFAULTS,
    TASK_SETTINGS,
    TESTBED,
    CausesSpec,
    CausesSummary,
    MeasuredTasks,
    command,
    fit,
    tasks_of,
)
from fsviz.studies.causes.tables import EXPLAINED, correlation_table, task_table
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.tasks import draw, fitting, snapshot
from fsviz.workspace import plain_json

__all__ = [
    "ACCURACY",
    "ALIKE",
    "BRUSH",
    "EXPECTED",
    "EXPLAINED",
    "METHODS_EXPLAINED",
    "RANK",
    "RUN",
    "STAGE",
    "STAGE_TITLES",
    "STUDY",
    "TASK_DEFAULTS",
    "TASK_SETTINGS",
    "TESTBED",
    "CausesSpec",
    "CausesSummary",
    "MeasuredTasks",
    "VarianceExplained",
    "VarianceShare",
    "as_table",
    "brush_text",
    "calibration",
    "cause_name",
    "causes_at",
    "check",
    "class_names",
    "command",
    "correlation_table",
    "correlations",
    "describe_accuracy",
    "describe_selection",
    "explained",
    "explained_numbers",
    "extremes",
    "families",
    "fit",
    "headline",
    "predictions",
    "ranks",
    "sampling_noise",
    "select_tasks",
    "selection_breakdown",
    "strongest_measure",
    "summary",
    "task_table",
    "unexplainable",
    "with_predictions",
]

_CHUNK_IMAGES = 12_000  # images in the tasks of a chunk: 2 to 3 s on one core
_SECONDS = 3.5e-4  # per image of a task, on one core
_MIN_TASKS = 60  # tasks that a regression can be fitted on


def _size(spec: CausesSpec) -> tuple[int, int]:
    """Number of tasks of a checked spec, and the largest number of images in one of them."""
    if not (spec["run"] or spec["testbed"]):
        n_tasks = int(spec["n_tasks"])
        return min(n_tasks, spec["most"] or n_tasks), draw.max_images(spec)
    tasks = tasks_of(spec, *_source(spec)).tasks
    return len(tasks), _images_per_task(tasks)


def work(spec: CausesSpec) -> Work:
    """Number of tasks and the seconds that measuring them takes."""
    n_tasks, images = _size(spec)
    return Work(n_tasks, "tasks", n_tasks * images * _SECONDS)


def shorten(spec: CausesSpec, n: int) -> CausesSpec | None:
    """The spec of the first tasks only, enough for a regression."""
    n_tasks, _ = _size(spec)
    return {**spec, "most": max(n, _MIN_TASKS)} if n_tasks > _MIN_TASKS else None


def _images_per_task(tasks: Tasks) -> int:
    return int(np.prod(tasks.support.shape[1:]) + np.prod(tasks.query.shape[1:]))


def run_chunk(spec: CausesSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Every measure and every accuracy of a range of tasks."""
    dataset, table = _source(spec)
    tasks = snapshot.tasks(spec["folder"], start=start, stop=stop)
    arrays: dict[str, np.ndarray] = {}
    of_image = task_measures.of_images(tasks, table)
    predictions = {}
    for method in spec["methods"]:
        predictions[method] = evaluate.predict_tasks(dataset, table.backbone, method, METHODS[method].checked(), tasks)
        arrays[f"accuracy_{method}"] = evaluation.task_accuracy(predictions[method])
    of_method = predictions[spec["methods"][0]] if predictions else "protonet"
    for name, measure in MEASURES.items():
        if name in of_image:
            arrays[f"measure_{name}"] = of_image[name]
        elif name not in spec["unknown"]:
            arrays[f"measure_{name}"] = task_measures.measured(measure, tasks, dataset, table, of_method)
    return arrays


def collect(spec: CausesSpec, chunks: Sequence[Arrays]) -> MeasuredTasks:
    """The measured tasks of the finished chunks."""
    if not chunks:
        raise BadInput("This run has no results yet. Wait for its first part.")
    rows = joined(chunks)[0]
    measures = {n.removeprefix("measure_"): v for n, v in rows.items() if n.startswith("measure_")}
    undefined = {n: task_measures.UNDEFINED for n, v in measures.items() if not np.isfinite(v).any()}
    accuracy = {METHODS[n.removeprefix("accuracy_")].title: v for n, v in rows.items() if n.startswith("accuracy_")}
    ordered = {name: measures[name] for name in MEASURES if name in measures and name not in undefined}
    tasks = snapshot.tasks(spec["folder"]).take(rows["positions"])
    return MeasuredTasks(spec, tasks, ordered, accuracy, {**spec["unknown"], **undefined}, spec["recipe"])


def with_predictions(measured: MeasuredTasks, accuracy: Mapping[str, np.ndarray]) -> MeasuredTasks:
    """The same tasks with recorded accuracies of all tasks, in their order."""
    for label, values in accuracy.items():
        if len(values) != len(measured):
            raise BadInput(
                f"{label} has accuracies of {len(values):,} tasks, but {len(measured):,} were measured. "
                "Select the run of these tasks."
            )
    return replace(measured, accuracy={**measured.accuracy, **accuracy})


def prepare(spec: CausesSpec, folder: Path) -> CausesSpec:
    """The spec with facts about its tasks, which are saved in `folder`."""
    dataset, table = _source(spec)
    testbed = tasks_of(spec, dataset, table)
    snapshot.freeze(folder, testbed)
    tasks = testbed.tasks
    return {
        **spec,
        "n_measured": len(tasks),
        "images_per_task": _images_per_task(tasks),
        "digest": snapshot.digest(tasks),
        "unknown": task_measures.undefined_measures(tasks, dataset, spec["backbone"]),
        "recipe": {**plain_json(dict(testbed.recipe)), "name": testbed.name},
    }


def parts(spec: CausesSpec) -> list[Part]:
    """One part, in chunks of about as many images."""
    size = int(np.clip(_CHUNK_IMAGES // spec["images_per_task"], 1, 200))
    return [Part("", spec["n_measured"], size)]


def partial(spec: CausesSpec, chunks: Sequence[Arrays]) -> CausesSummary:
    """Number of measured tasks and mean accuracies of a run in progress."""
    if not chunks:
        return {"n_tasks": 0}
    measured = collect(spec, chunks)
    return plain_json({"n_tasks": len(measured), "methods": {k: mean(v) for k, v in measured.accuracy.items()}})


def check(spec: RawSettings) -> CausesSpec:
    """The spec with every setting; shots and queries fit the dataset, alpha fits the sampler."""
    values = fitting.check(SETTINGS, spec, TASK_DEFAULTS, sampled=not (spec.get("testbed") or spec.get("run")))
    if values["testbed"] and values["run"]:
        raise BadInput("Tasks come from a testbed or a run, not both. Give one of them.")
    if not values["methods"] and not values["run"]:
        raise BadInput("Causes need the accuracy of at least one method. Give one, such as protonet.")
    return cast(CausesSpec, values)


def _source(spec: CausesSpec) -> tuple[Dataset, Features]:
    dataset = datasets.load(spec["dataset"])
    return dataset, features.load(dataset, spec["backbone"])


STUDY = Study(
    name="causes",
    title="causes of difficulty",
    question="What makes these tasks hard?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    headline=headline_numbers,
    summarise=summary,
    work=work,
    shorten=shorten,
    partial=partial,
    ignored=("most",),
    threads=2,
)
