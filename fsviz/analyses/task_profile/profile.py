"""One task opened: its measures, and the results of methods on it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
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

MAX_MEASURED = 200  # tasks of a testbed that a passport's numbers are held against at once
ACCURACY = "accuracy of "
_AS_FAST = 3  # a method that is slower than so many times ProtoNet waits for a run


@dataclass(frozen=True)
class MethodResult:
    """Predictions of one method for the task, with its accuracy on the whole testbed.

    source       the run it is from, "" where it was computed here
    predictions  of length one; None where a run did not keep them
    others       (n,) accuracy of the testbed's tasks that are known, NaN where not done; with `positions` (n,)
    """

    label: str
    method: str
    backbone: str
    accuracy: float
    predictions: Predictions | None = None
    source: str = ""
    positions: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    others: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def key(self) -> str:
        return f"{self.label} · {self.backbone}"

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy of the testbed's tasks that are known, and the half-width of its 95% interval."""
        if not np.isfinite(self.others).any():
            return np.nan, np.nan
        mean, half = mean_and_ci95(self.others)
        return float(mean), float(half)


@dataclass(frozen=True)
class MeasureValue:
    """One measure of the task, or why it is not known."""

    measure: Measure
    value: float
    why_not: str = ""


@dataclass(frozen=True)
class TaskProfile:
    """Everything about one task that is available at once.

    tasks    the task alone
    answers  those of runs of its testbed, else of methods that answer at once; () without features or images
    values   every measure; of a task of classes only those that need no images
    """

    found: ResolvedTestbed
    position: int
    backbone: str
    tasks: Tasks
    answers: tuple[MethodResult, ...] = ()
    values: tuple[MeasureValue, ...] = ()

    @property
    def cache_key(self) -> tuple[str, ...]:
        """What changes when the profile does."""
        return str(self.task_id), self.backbone, self.dataset.name, datasets.stamp(self.dataset.name)

    @property
    def dataset(self) -> Dataset:
        return self.found.dataset

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.found.name, self.position)

    @property
    def class_ids(self) -> np.ndarray:
        ids = self.tasks.class_ids[0]
        return ids[ids != PAD]

    @property
    def names(self) -> list[str]:
        return self.dataset.distinct_names(self.class_ids)

    @property
    def has_images(self) -> bool:
        return self.tasks.has_images

    def value(self, name: str) -> float:
        return next((v.value for v in self.values if v.measure.name == name), np.nan)


# Opening -----------------------------------------------------------------------------------------------------------


def open_task(
    testbed: ResolvedTestbed, position: int, backbone: str = "", of_runs: Sequence[MethodResult] = ()
) -> TaskProfile:
    """The profile of a task, as far as it is available at once.

    of_runs  what methods of recorded runs said of this task (see `answers_of_run`); others are then not computed
    """
    tasks = task_at(testbed, position)
    if not testbed.dataset.has_features or not tasks.has_images:
        passport = TaskProfile(testbed, position, "", tasks)
        return replace(passport, values=tuple(_values(passport)))
    backbone = backbone or draw.default_backbone(testbed.dataset)
    evaluation.check_tasks(features.load(testbed.dataset, backbone), tasks)
    answers = tuple(of_runs) or tuple(_method_results(testbed.dataset, backbone, tasks))
    passport = TaskProfile(testbed, position, backbone, tasks, answers)
    return replace(passport, values=tuple(_values(passport)))


def task_at(testbed: ResolvedTestbed, position: int) -> Tasks:
    """One task of a testbed, alone."""
    n = len(testbed.tasks)
    if not 0 <= position < n:
        raise BadInput(
            f"This testbed has {n:,} task{'s' if n > 1 else ''}, at position{'s 0 to' if n > 1 else ''} {n - 1:,}. Got "
            f"{position:,}. Choose one of them."
        )
    return testbed.tasks.take(slice(position, position + 1))


def fast_methods(dataset: Dataset, backbone: str, tasks: Tasks) -> list[str]:
    """The methods that answer nearly as soon as ProtoNet, by a count of operations."""
    cost = {name: evaluate.guess_seconds(dataset, backbone, name, {}, tasks) for name in METHODS}
    return [name for name, seconds in cost.items() if seconds <= _AS_FAST * cost["protonet"]]


def _method_results(dataset: Dataset, backbone: str, tasks: Tasks) -> list[MethodResult]:
    results = []
    for name in fast_methods(dataset, backbone, tasks):
        said = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), tasks)
        accuracy = float(evaluation.task_accuracy(said)[0])
        results.append(MethodResult(METHODS[name].title, name, backbone, accuracy, said))
    return results


def digest(testbed: ResolvedTestbed) -> str:
    """The digest that runs of exactly these tasks share."""
    return snapshot.digest(testbed.tasks)


def is_of_testbed(spec: Any, wanted: str) -> bool:
    """Whether a recorded run evaluated exactly the tasks with this digest."""
    return evaluate.is_complete(spec) and any(part["tasks"]["digest"] == wanted for part in evaluate.run_testbeds(spec))


def results_of_run(
    run_id: str, spec: evaluate.ResolvedSpec, chunks: Any, wanted: str, position: int, summary: Any = None
) -> list[MethodResult]:
    """Results of the methods of a run on one of its tasks.

    chunks  chunks(indices) -> those of the run, None for all
    """
    results = []
    for line in run_comparison.method_runs(run_id, spec, chunks(None), summary):
        if line.digest != wanted or not np.isfinite(line.accuracy[position]):
            continue
        size = spec["chunk_tasks"][line.entry]
        index = evaluate.chunks_of(spec, line.entry)[position // size]
        said: Predictions | None = None
        try:
            (chunk,) = chunks([index])
            said = Predictions.from_arrays(chunk).take(slice(position - int(chunk["start"]), None)).take(slice(0, 1))
        except (FsvizError, KeyError, ValueError):  # its accuracy is known all the same
            said = None
        positions = np.arange(len(line.accuracy))
        accuracy = np.asarray(line.accuracy, dtype=float)
        results.append(
            MethodResult(
                line.label, line.method, line.backbone, float(accuracy[position]), said, run_id, positions, accuracy
            )
        )
    return results


def newest_of_each(answers: Sequence[MethodResult]) -> list[MethodResult]:
    """One answer per method and backbone: the first, as runs are listed newest first."""
    return list({one.key: one for one in reversed(answers)}.values())[::-1]


def _values(passport: TaskProfile) -> list[MeasureValue]:
    values = []
    for measure in MEASURES.values():
        value, why_not = np.nan, ""
        try:
            value = _value(passport, measure)
            why_not = "" if np.isfinite(value) else "It is not defined for a task like this."
        except FsvizError as error:
            why_not = str(error)
        values.append(MeasureValue(measure, value, why_not))
    return values


def _value(passport: TaskProfile, measure: Measure) -> float:
    dataset, tasks = passport.dataset, passport.tasks
    if measure.name in tasks.measures:
        return float(tasks.measures[measure.name][0])
    if not passport.backbone:
        if measure.name in (known := draw.with_coarsity(tasks, dataset).measures):
            return float(known[measure.name][0])
        raise Missing("That takes features of the task's images, and there are none.")
    if "overlaps" in measure.needs:  # pair by pair: all pairs of the split would take a while
        return float(np.triu(custom_task.pair_confusions(dataset, passport.backbone, passport.class_ids)).sum())
    return float(task_measures.measure_tasks(tasks, dataset, passport.backbone, [measure.name])[measure.name].iloc[0])


def command(passport: TaskProfile) -> str:
    """The command that tells the same."""
    more = ["--backbone", passport.backbone] if passport.backbone else []
    return shlex.join(["fsviz", "passport", str(passport.task_id), *more])


def first_task(dataset: Dataset) -> TaskId:
    """A task to begin with: the first of those that the dataset's tasks are usually drawn as."""
    sampler = draw.default_sampler(dataset)
    if dataset.has_features:
        backbone = draw.default_backbone(dataset)
        asked = {**evaluate.feasible_sampler(dataset, backbone, n_tasks=MAX_MEASURED), "sampler": sampler}
        bed = evaluate.sample_testbed(dataset, asked, 0, {backbone: features.load(dataset, backbone)})
        return TaskId(name_testbed(dataset, bed.tasks, bed.recipe, (backbone,)), 0)
    n_way = min(5, len(dataset.split_class_ids(draw.default_split(dataset))))
    bed = draw.sample(dataset, sampler=sampler, n_way=n_way, n_tasks=MAX_MEASURED)
    return TaskId(name_testbed(dataset, bed.tasks, bed.recipe), 0)
