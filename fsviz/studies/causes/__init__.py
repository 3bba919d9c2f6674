"""Why are these tasks hard? Every measure of every task, compared with the accuracy of methods.

    tasks -> measures (fsviz.difficulty.measures) and accuracies -> correlations, families of measures
          -> a regression that has not seen the task -> shares of the causes -> one sentence

Tasks are drawn by the settings of tasks (see fsviz.tasks.draw), or those of a "testbed", or those of an evaluation
("run"), whose accuracies are then used too; "most" takes the first so many. A chunk holds every measure of its tasks,
and every method's accuracy.

After all five papers; that causes are weighed against each other is of this project.
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
    causes_at,
    correlations,
    explained,
    families,
    headline,
    headline_numbers,
    mean,
    mean_accuracy,
    sampling_noise,
    summary,
)
from fsviz.studies.causes.selection import (
    ACCURACY,
    BRUSH,
    EXPECTED,
    RANK,
    as_table,
    brush_text,
    chosen,
    describe_selection,
    extremes,
    predictions,
    ranks,
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
    "causes_at",
    "check",
    "chosen",
    "command",
    "correlation_table",
    "correlations",
    "describe_selection",
    "explained",
    "extremes",
    "families",
    "fit",
    "headline",
    "mean_accuracy",
    "predictions",
    "ranks",
    "sampling_noise",
    "selection_breakdown",
    "summary",
    "task_table",
    "with_predictions",
]

_CHUNK_IMAGES = 12_000  # images in the tasks of a chunk: two or three seconds on one core
_SECONDS = 3.5e-4  # per image of a task, on one ordinary core
_FEWEST = 60  # tasks that a regression can be learned from


def _size(spec: CausesSpec) -> tuple[int, int]:
    """How many tasks a checked spec measures, and how many images one of them has at most."""
    if not (spec["run"] or spec["testbed"]):
        n_tasks = int(spec["n_tasks"])
        return min(n_tasks, spec["most"] or n_tasks), draw.max_images(spec)
    tasks = tasks_of(spec, *_source(spec)).tasks
    return len(tasks), _images_per_task(tasks)


def work(spec: CausesSpec) -> Work:
    n_tasks, images = _size(spec)
    return Work(n_tasks, "tasks", n_tasks * images * _SECONDS)


def shorten(spec: CausesSpec, n: int) -> CausesSpec | None:
    """The first tasks alone, enough for a regression."""
    n_tasks, _ = _size(spec)
    return {**spec, "most": max(n, _FEWEST)} if n_tasks > _FEWEST else None


def _images_per_task(tasks: Tasks) -> int:
    return int(np.prod(tasks.support.shape[1:]) + np.prod(tasks.query.shape[1:]))


def run_chunk(spec: CausesSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Every measure of a range of tasks, and every method's accuracy."""
    dataset, table = _source(spec)
    tasks = snapshot.tasks(spec["folder"], start=start, stop=stop)
    arrays: dict[str, np.ndarray] = {}
    of_image = task_measures.of_images(tasks, table)
    said = {}
    for method in spec["methods"]:
        said[method] = evaluate.predict_tasks(dataset, table.backbone, method, METHODS[method].checked(), tasks)
        arrays[f"accuracy_{method}"] = evaluation.task_accuracy(said[method])
    answers = said[spec["methods"][0]] if said else "protonet"
    for name, measure in MEASURES.items():
        if name in of_image:
            arrays[f"measure_{name}"] = of_image[name]
        elif name not in spec["unknown"]:
            arrays[f"measure_{name}"] = task_measures.measured(measure, tasks, dataset, table, answers)
    return arrays


def collect(spec: CausesSpec, chunks: Sequence[Arrays]) -> MeasuredTasks:
    """The measured tasks of the finished chunks."""
    if not chunks:
        raise BadInput("No task of this run has been measured yet. Wait for its first part.")
    rows = joined(chunks)[0]
    known = {n.removeprefix("measure_"): v for n, v in rows.items() if n.startswith("measure_")}
    lost = {n: "It is not defined for tasks like these." for n, v in known.items() if not np.isfinite(v).any()}
    accuracy = {METHODS[n.removeprefix("accuracy_")].title: v for n, v in rows.items() if n.startswith("accuracy_")}
    ordered = {name: known[name] for name in MEASURES if name in known and name not in lost}
    tasks = snapshot.tasks(spec["folder"]).take(rows["positions"])
    return MeasuredTasks(spec, tasks, ordered, accuracy, {**spec["unknown"], **lost}, spec["recipe"])


def with_predictions(measured: MeasuredTasks, accuracy: Mapping[str, np.ndarray]) -> MeasuredTasks:
    """The same tasks with accuracies that were recorded elsewhere: of all tasks, in their order."""
    for label, values in accuracy.items():
        if len(values) != len(measured):
            raise BadInput(
                f"{label} answered {len(values):,} tasks, and {len(measured):,} were measured. Choose its run."
            )
    return replace(measured, accuracy={**measured.accuracy, **accuracy})


def prepare(spec: CausesSpec, folder: Path) -> CausesSpec:
    """Freezes the tasks of a spec into `folder`, and adds what they are like."""
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
    size = int(np.clip(_CHUNK_IMAGES // spec["images_per_task"], 1, 200))
    return [Part("", spec["n_measured"], size)]


def partial(spec: CausesSpec, chunks: Sequence[Arrays]) -> CausesSummary:
    """How many tasks are measured, while a run is under way."""
    if not chunks:
        return {"n_tasks": 0}
    measured = collect(spec, chunks)
    return plain_json({"n_tasks": len(measured), "methods": {k: mean(v) for k, v in measured.accuracy.items()}})


def check(spec: RawSettings) -> CausesSpec:
    """The spec with every setting; shots and queries fit the dataset, and alpha the sampler."""
    values = fitting.check(SETTINGS, spec, TASK_DEFAULTS, sampled=not (spec.get("testbed") or spec.get("run")))
    if values["testbed"] and values["run"]:
        raise BadInput("Tasks come from a testbed or from a run, not from both. Name one of them.")
    if not values["methods"] and not values["run"]:
        raise BadInput("At least one method must answer the tasks. Name one, such as protonet.")
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
