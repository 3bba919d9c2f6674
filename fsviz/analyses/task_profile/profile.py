"""The profile of a task: its measures, and the results of methods on it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fsviz import datasets, evaluation, features
from fsviz.analyses import custom_task, run_comparison
from fsviz.difficulty.measures import MEASURES, Measure
from fsviz.errors import BadInput, FsvizError, Missing
from fsviz.methods import METHODS
from fsviz.numerics import mean_and_ci95
from fsviz.records import PAD, Dataset, Predictions, TaskId, Tasks
from fsviz.studies import evaluate, task_measures
from fsviz.tasks import draw, snapshot
from fsviz.tasks.task_ids import ResolvedTestbed, name_testbed

MAX_MEASURED = 200  # tasks of a testbed that a profile is compared with by default
ACCURACY = "accuracy of "
_AS_FAST = 3  # a method slower than this many times ProtoNet needs a run


@dataclass(frozen=True)
class MethodResult:
    """Predictions of a method for the task, with its accuracy on the testbed.

    source            the run it comes from, "" if it was computed here
    predictions       of length one; None if the run did not save them
    positions         (n,) tasks of the testbed
    testbed_accuracy  (n,) accuracy on these tasks, NaN if a task is not finished
    """

    label: str
    method: str
    backbone: str
    accuracy: float
    predictions: Predictions | None = None
    source: str = ""
    positions: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    testbed_accuracy: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def key(self) -> str:
        return f"{self.label} · {self.backbone}"

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy over the finished tasks of the testbed, and the half-width of its 95% CI."""
        if not np.isfinite(self.testbed_accuracy).any():
            return np.nan, np.nan
        mean, half_width = mean_and_ci95(self.testbed_accuracy)
        return float(mean), float(half_width)


@dataclass(frozen=True)
class MeasureValue:
    """The value of a measure for the task, or why it is not available."""

    measure: Measure
    value: float
    why_not: str = ""


@dataclass(frozen=True)
class TaskProfile:
    """The numbers of a task that are available at once.

    testbed  the testbed of the task
    tasks    the task alone
    results  of the methods in runs of its testbed, else of fast methods; () without features or images
    values   every measure; without images only those that need none
    """

    testbed: ResolvedTestbed
    position: int
    backbone: str
    tasks: Tasks
    results: tuple[MethodResult, ...] = ()
    values: tuple[MeasureValue, ...] = ()

    @property
    def cache_key(self) -> tuple[str, ...]:
        """The identity of the profile for caches."""
        return str(self.task_id), self.backbone, self.dataset.name, datasets.stamp(self.dataset.name)

    @property
    def dataset(self) -> Dataset:
        return self.testbed.dataset

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.testbed.name, self.position)

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe of the testbed."""
        return self.testbed.testbed.recipe

    @property
    def class_ids(self) -> np.ndarray:
        ids = self.tasks.class_ids[0]
        return ids[ids != PAD]

    @property
    def names(self) -> list[str]:
        return self.dataset.distinct_names(self.class_ids)

    @property
    def short_names(self) -> list[str]:
        """Names of the classes without the folders that they do not need to be distinct."""
        return self.dataset.short_names(self.class_ids)

    @property
    def has_images(self) -> bool:
        return self.tasks.has_images

    def value(self, name: str) -> float:
        return next((v.value for v in self.values if v.measure.name == name), np.nan)


# Opening -----------------------------------------------------------------------------------------------------------


def open_task(
    testbed: ResolvedTestbed, position: int, backbone: str = "", recorded: Sequence[MethodResult] = ()
) -> TaskProfile:
    """The profile of a task, as far as it is available at once.

    recorded  results of runs for this task (see `results_of_run`); without them fast methods are computed
    """
    tasks = task_at(testbed, position)
    if not testbed.dataset.has_features or not tasks.has_images:
        profile = TaskProfile(testbed, position, "", tasks)
        return replace(profile, values=tuple(_values(profile)))
    backbone = backbone or draw.default_backbone(testbed.dataset)
    evaluation.check_tasks(features.load(testbed.dataset, backbone), tasks)
    results = tuple(recorded) or tuple(_method_results(testbed.dataset, backbone, tasks))
    profile = TaskProfile(testbed, position, backbone, tasks, results)
    return replace(profile, values=tuple(_values(profile)))


def task_at(testbed: ResolvedTestbed, position: int) -> Tasks:
    """A task of a testbed, alone."""
    n = len(testbed.tasks)
    if not 0 <= position < n:
        raise BadInput(
            f"The position must be 0{f' to {n - 1:,}' if n > 1 else ''}: this testbed has {n:,} task{'s' * (n > 1)}. "
            f"Got {position:,}. Choose another position."
        )
    return testbed.tasks.take(slice(position, position + 1))


def fast_methods(dataset: Dataset, backbone: str, tasks: Tasks) -> list[str]:
    """The methods that are about as fast as ProtoNet, by a count of operations."""
    cost = {name: evaluate.guess_seconds(dataset, backbone, name, {}, tasks) for name in METHODS}
    return [name for name, seconds in cost.items() if seconds <= _AS_FAST * cost["protonet"]]


def _method_results(dataset: Dataset, backbone: str, tasks: Tasks) -> list[MethodResult]:
    results = []
    for name in fast_methods(dataset, backbone, tasks):
        predictions = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), tasks)
        accuracy = float(evaluation.task_accuracy(predictions)[0])
        results.append(MethodResult(METHODS[name].title, name, backbone, accuracy, predictions))
    return results


def digest(testbed: ResolvedTestbed) -> str:
    """The digest shared by all runs of exactly these tasks."""
    return snapshot.digest(testbed.tasks)


def is_of_testbed(spec: Any, tasks_digest: str) -> bool:
    """Whether a recorded run evaluated exactly the tasks with this digest."""
    return evaluate.is_complete(spec) and any(
        part["tasks"]["digest"] == tasks_digest for part in evaluate.run_testbeds(spec)
    )


def results_of_run(
    run_id: str, spec: evaluate.ResolvedSpec, chunks: Any, tasks_digest: str, position: int, summary: Any = None
) -> list[MethodResult]:
    """Results of the methods of a run on one of its tasks.

    chunks  chunks(indices) -> chunks of the run; chunks(None) -> all
    """
    results = []
    for method_run in run_comparison.method_runs(run_id, spec, chunks(None), summary):
        if method_run.digest != tasks_digest or not np.isfinite(method_run.accuracy[position]):
            continue
        size = spec["chunk_tasks"][method_run.entry]
        index = evaluate.chunks_of(spec, method_run.entry)[position // size]
        predictions: Predictions | None = None
        try:
            (chunk,) = chunks([index])
            predictions = (
                Predictions.from_arrays(chunk).take(slice(position - int(chunk["start"]), None)).take(slice(0, 1))
            )
        except (FsvizError, KeyError, ValueError):  # its accuracy is available without them
            predictions = None
        positions = np.arange(len(method_run.accuracy))
        accuracy = np.asarray(method_run.accuracy, dtype=float)
        results.append(
            MethodResult(
                method_run.label,
                method_run.method,
                method_run.backbone,
                float(accuracy[position]),
                predictions,
                run_id,
                positions,
                accuracy,
            )
        )
    return results


def newest_of_each(results: Sequence[MethodResult]) -> list[MethodResult]:
    """One result per method and backbone: the first, as runs are listed newest first."""
    return list({result.key: result for result in reversed(results)}.values())[::-1]


def _values(profile: TaskProfile) -> list[MeasureValue]:
    values = []
    for measure in MEASURES.values():
        value, why_not = np.nan, ""
        try:
            value = _value(profile, measure)
            why_not = "" if np.isfinite(value) else f"Undefined for {profile.tasks.setting} tasks."
        except FsvizError as error:
            why_not = str(error)
        values.append(MeasureValue(measure, value, why_not))
    return values


def _value(profile: TaskProfile, measure: Measure) -> float:
    dataset, tasks = profile.dataset, profile.tasks
    if measure.name in tasks.measures:
        return float(tasks.measures[measure.name][0])
    if not profile.backbone:
        if measure.name in (measures := draw.with_coarsity(tasks, dataset).measures):
            return float(measures[measure.name][0])
        raise Missing("This measure needs features of the task's images.")
    if "overlaps" in measure.needs:  # pair by pair: all pairs of the split would take a while
        return float(np.triu(custom_task.pair_confusions(dataset, profile.backbone, profile.class_ids)).sum())
    return float(task_measures.measure_tasks(tasks, dataset, profile.backbone, [measure.name])[measure.name].iloc[0])


def command(profile: TaskProfile) -> str:
    """The command with the same output."""
    more = ["--backbone", profile.backbone] if profile.backbone else []
    return shlex.join(["fsviz", "passport", str(profile.task_id), *more])


def first_task(dataset: Dataset) -> TaskId:
    """The first task that the default sampler of the dataset samples."""
    sampler = draw.default_sampler(dataset)
    if dataset.has_features:
        backbone = draw.default_backbone(dataset)
        requested = {**evaluate.feasible_sampler(dataset, backbone, n_tasks=MAX_MEASURED), "sampler": sampler}
        bed = evaluate.sample_testbed(dataset, requested, 0, {backbone: features.load(dataset, backbone)})
        return TaskId(name_testbed(dataset, bed.tasks, bed.recipe, (backbone,)), 0)
    n_way = min(5, len(dataset.split_class_ids(draw.default_split(dataset))))
    bed = draw.sample(dataset, sampler=sampler, n_way=n_way, n_tasks=MAX_MEASURED)
    return TaskId(name_testbed(dataset, bed.tasks, bed.recipe), 0)
