"""A task compared with the other tasks of its testbed: percentiles, orders and neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.analyses.task_profile.profile import ACCURACY, MAX_MEASURED, MethodResult, TaskProfile
from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.measures import MEASURES
from fsviz.methods import METHODS
from fsviz.records import Progress
from fsviz.studies import evaluate, task_measures
from fsviz.tasks import draw
from fsviz.tasks.task_ids import ResolvedTestbed

POSITION = "position"
_STEP = 20  # tasks measured between two reports of progress


@dataclass(frozen=True)
class ValuesAmongTasks:
    """Measured values of tasks of a testbed.

    positions  (n,) of the measured tasks: all, or some that are evenly spread
    n_tasks    number of tasks in the testbed
    table      a row per measured task, a column per measure
    accuracy   label -> (n,) accuracy of the methods that were computed here
    """

    positions: np.ndarray
    n_tasks: int
    table: pd.DataFrame
    accuracy: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.positions) == self.n_tasks


@dataclass(frozen=True)
class Percentile:
    """The position of a task's value among the other tasks of its testbed.

    lower    share of the others with a lower value; equal values count half; NaN without others
    harder   share of the others that are easier by this measure
    """

    value: float
    lower: float
    harder: float
    n: int


# Compared with the others -------------------------------------------------------------------------------------------


def values_among_tasks(
    testbed: ResolvedTestbed,
    backbone: str = "",
    max_tasks: int = MAX_MEASURED,
    methods: Sequence[str] = (),
    progress: Progress | None = None,
) -> ValuesAmongTasks:
    """Measures tasks of a testbed, and the accuracy of these methods on them."""
    positions = evaluate.spread_evenly(len(testbed.tasks), max_tasks)
    some = testbed.tasks.take(positions)
    dataset = testbed.dataset
    if not backbone or not dataset.has_features or not some.has_images:
        available = draw.with_coarsity(some, dataset).measures
        return ValuesAmongTasks(
            positions, len(testbed.tasks), pd.DataFrame({k: v for k, v in available.items() if k in MEASURES})
        )
    steps = [slice(start, start + _STEP) for start in range(0, len(some), _STEP)]
    rows, total = [], len(steps) * _STEP + len(methods) * _STEP
    for step in steps:
        if progress is not None:
            progress(step.start, total, "tasks of the testbed")
        rows.append(task_measures.measure_tasks(some.take(step), dataset, backbone))
    accuracy = {}
    for i, name in enumerate(methods):
        if progress is not None:
            progress((len(steps) + i) * _STEP, total, "tasks of the testbed")
        predictions = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), some)
        accuracy[METHODS[name].title] = evaluation.task_accuracy(predictions)
    table = pd.concat(rows, ignore_index=True)
    for name, values in some.measures.items():  # coarsity by the distance the tasks were sampled with
        if name in MEASURES:
            table[name] = values
    return ValuesAmongTasks(positions, len(testbed.tasks), table, accuracy)


def with_values_among_tasks(profile: TaskProfile, among: ValuesAmongTasks) -> TaskProfile:
    """The profile with the accuracy on other tasks of the methods that were computed here."""
    results = [
        replace(result, positions=among.positions, testbed_accuracy=among.accuracy[result.label])
        if not result.source and result.label in among.accuracy
        else result
        for result in profile.results
    ]
    return replace(profile, results=tuple(results))


def percentile(value: float, reference: np.ndarray, direction: str) -> Percentile:
    """The percentile of a value among those of other tasks."""
    reference = np.asarray(reference, dtype=float)
    reference = reference[np.isfinite(reference)]
    if not len(reference) or not np.isfinite(value):
        return Percentile(value, np.nan, np.nan, len(reference))
    same = np.isclose(reference, value, rtol=1e-6, atol=1e-12)
    lower = float(((reference < value) & ~same).mean() + same.mean() / 2)
    return Percentile(value, lower, lower if direction == "harder" else 1 - lower, len(reference))


def percentiles(profile: TaskProfile, among: ValuesAmongTasks) -> dict[str, Percentile]:
    """The percentile of every measure that is available for the task and for others, by name."""
    apart = among.positions != profile.position
    by_measure = {}
    for item in profile.values:
        if item.measure.name in among.table and np.isfinite(item.value):
            reference = among.table[item.measure.name].to_numpy()[apart]
            by_measure[item.measure.name] = percentile(item.value, reference, item.measure.direction)
    return by_measure


def accuracy_percentile(profile: TaskProfile, result: MethodResult) -> Percentile:
    """The percentile of a method's accuracy on this task among the other tasks."""
    apart = result.positions != profile.position
    return percentile(result.accuracy, result.testbed_accuracy[apart], "easier")


def orders(profile: TaskProfile, among: ValuesAmongTasks | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Orders of the tasks of a testbed: name -> positions, and their values.

    The names are "position", those of measures, and "accuracy of METHOD".
    """
    everyone = np.arange(len(profile.testbed.tasks))
    by_order = {POSITION: (everyone, everyone.astype(float))}
    for name, values in profile.testbed.tasks.measures.items():
        by_order[name] = (everyone, np.asarray(values, dtype=float))
    if among is not None:
        for name in among.table:
            by_order.setdefault(str(name), (among.positions, among.table[name].to_numpy(dtype=float)))
    for result in profile.results:
        if len(result.testbed_accuracy):
            by_order[f"{ACCURACY}{result.key}"] = (result.positions, result.testbed_accuracy)
    return by_order


def neighbours(
    profile: TaskProfile, positions: np.ndarray, values: np.ndarray, own: float
) -> tuple[int | None, int | None]:
    """The tasks before and after this one by value, then by position; None at an end."""
    comparable = np.isfinite(values) & (positions != profile.position)
    positions, values = positions[comparable], values[comparable]
    if not np.isfinite(own) or not len(positions):
        return None, None
    order = np.lexsort((positions, values))
    is_before = (values < own) | ((values == own) & (positions < profile.position))
    rank = int(is_before.sum())
    before = int(positions[order[rank - 1]]) if rank else None
    return before, int(positions[order[rank]]) if rank < len(order) else None


@dataclass(frozen=True)
class GapPercentile:
    """The shift of an attribute from support to queries, mean over classes, and its percentile."""

    name: str
    gap: float
    in_deviations: bool
    percentile: Percentile


def gaps(profile: TaskProfile, max_tasks: int = MAX_MEASURED) -> list[GapPercentile]:
    """The shift of every attribute, largest percentile first."""
    dataset = profile.dataset
    if not profile.has_images or not attribute_gaps.attribute_names(dataset):
        return []
    positions = evaluate.spread_evenly(len(profile.testbed.tasks), max_tasks)
    other_tasks = profile.testbed.tasks.take(positions[positions != profile.position])
    own = attribute_gaps.measure_gaps(dataset, profile.tasks, by="class")
    of_others = attribute_gaps.measure_gaps(dataset, other_tasks, by="class") if len(other_tasks) else {}
    every_gap = []
    for name, gap in own.items():
        size = float(gap.gap[0])
        other_gaps = of_others[name].gap if name in of_others else np.zeros(0)
        every_gap.append(GapPercentile(name, size, gap.attribute.is_numeric, percentile(size, other_gaps, "harder")))
    return sorted(every_gap, key=lambda g: -np.nan_to_num(g.percentile.harder, nan=np.nan_to_num(g.gap)))
