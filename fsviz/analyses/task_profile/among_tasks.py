"""A task among the tasks of its testbed: percentiles, orders and neighbours."""

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
_STEP = 20  # tasks that are measured between two words on how far it is


@dataclass(frozen=True)
class ValuesAmongTasks:
    """Measured values of the other tasks of a testbed.

    positions  (n,) which tasks: all, or some that are evenly spread
    n_tasks    how many there are
    table      a row per such task, a column per measure
    accuracy   label -> (n,) of the methods that were computed here
    """

    positions: np.ndarray
    n_tasks: int
    table: pd.DataFrame
    accuracy: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.positions) == self.n_tasks


@dataclass(frozen=True)
class Percentile:
    """Where a value of the task stands among the other tasks of its testbed.

    lower    share of the others with a lower value, those with the same count half; NaN where there are none
    harder   share of the others that are easier by this measure
    """

    value: float
    lower: float
    harder: float
    n: int


# Among the others --------------------------------------------------------------------------------------------------


def values_among_tasks(
    testbed: ResolvedTestbed,
    backbone: str = "",
    most: int = MAX_MEASURED,
    methods: Sequence[str] = (),
    progress: Progress | None = None,
) -> ValuesAmongTasks:
    """Measures tasks of a testbed, and what these methods get right of them."""
    positions = evaluate.spread_evenly(len(testbed.tasks), most)
    some = testbed.tasks.take(positions)
    dataset = testbed.dataset
    if not backbone or not dataset.has_features or not some.has_images:
        known = draw.with_coarsity(some, dataset).measures
        return ValuesAmongTasks(
            positions, len(testbed.tasks), pd.DataFrame({k: v for k, v in known.items() if k in MEASURES})
        )
    steps = [slice(start, start + _STEP) for start in range(0, len(some), _STEP)]
    rows, total = [], len(steps) * _STEP + len(methods) * _STEP
    for step in steps:
        if progress is not None:
            progress(step.start, total, "tasks of its testbed")
        rows.append(task_measures.measure_tasks(some.take(step), dataset, backbone))
    accuracy = {}
    for i, name in enumerate(methods):
        if progress is not None:
            progress((len(steps) + i) * _STEP, total, "tasks of its testbed")
        said = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), some)
        accuracy[METHODS[name].title] = evaluation.task_accuracy(said)
    table = pd.concat(rows, ignore_index=True)
    for name, values in some.measures.items():  # as the tasks carry them: coarsity by the distance they were drawn with
        if name in MEASURES:
            table[name] = values
    return ValuesAmongTasks(positions, len(testbed.tasks), table, accuracy)


def with_values_among_tasks(passport: TaskProfile, among: ValuesAmongTasks) -> TaskProfile:
    """The passport with what methods that were computed here get right of other tasks."""
    known = [
        replace(one, positions=among.positions, others=among.accuracy[one.label])
        if not one.source and one.label in among.accuracy
        else one
        for one in passport.answers
    ]
    return replace(passport, answers=tuple(known))


def percentile(value: float, others: np.ndarray, direction: str) -> Percentile:
    """Where a value stands among those of other tasks."""
    others = np.asarray(others, dtype=float)
    others = others[np.isfinite(others)]
    if not len(others) or not np.isfinite(value):
        return Percentile(value, np.nan, np.nan, len(others))
    same = np.isclose(others, value, rtol=1e-6, atol=1e-12)
    lower = float(((others < value) & ~same).mean() + same.mean() / 2)
    return Percentile(value, lower, lower if direction == "harder" else 1 - lower, len(others))


def percentiles(passport: TaskProfile, among: ValuesAmongTasks) -> dict[str, Percentile]:
    """Every measure that is known of the task and of others, by name."""
    apart = among.positions != passport.position
    by_measure = {}
    for one in passport.values:
        if one.measure.name in among.table and np.isfinite(one.value):
            others = among.table[one.measure.name].to_numpy()[apart]
            by_measure[one.measure.name] = percentile(one.value, others, one.measure.direction)
    return by_measure


def accuracy_percentile(passport: TaskProfile, answer: MethodResult) -> Percentile:
    """Where the accuracy of a method on this task stands among those on the others."""
    apart = answer.positions != passport.position
    return percentile(answer.accuracy, answer.others[apart], "easier")


def orders(passport: TaskProfile, among: ValuesAmongTasks | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Orders of the tasks of a testbed: name -> positions, and their values.

    "position", measures by name, and "accuracy of METHOD".
    """
    everyone = np.arange(len(passport.found.tasks))
    by_order = {POSITION: (everyone, everyone.astype(float))}
    for name, values in passport.found.tasks.measures.items():
        by_order[name] = (everyone, np.asarray(values, dtype=float))
    if among is not None:
        for name in among.table:
            by_order.setdefault(str(name), (among.positions, among.table[name].to_numpy(dtype=float)))
    for one in passport.answers:
        if len(one.others):
            by_order[f"{ACCURACY}{one.key}"] = (one.positions, one.others)
    return by_order


def neighbours(
    passport: TaskProfile, positions: np.ndarray, values: np.ndarray, own: float
) -> tuple[int | None, int | None]:
    """The tasks before and after this one by a value, of equal ones by their position; None at an end."""
    known = np.isfinite(values) & (positions != passport.position)
    positions, values = positions[known], values[known]
    if not np.isfinite(own) or not len(positions):
        return None, None
    order = np.lexsort((positions, values))
    here = (values < own) | ((values == own) & (positions < passport.position))
    place = int(here.sum())
    before = int(positions[order[place - 1]]) if place else None
    return before, int(positions[order[place]]) if place < len(order) else None


@dataclass(frozen=True)
class AttributeGap:
    """How support and queries differ in one attribute, class by class on average, and among other tasks."""

    name: str
    gap: float
    in_deviations: bool
    standing: Percentile


def gaps(passport: TaskProfile, most: int = MAX_MEASURED) -> list[AttributeGap]:
    """Every attribute of the images, the largest gap beside that of other tasks first."""
    dataset = passport.dataset
    if not passport.has_images or not attribute_gaps.attribute_names(dataset):
        return []
    positions = evaluate.spread_evenly(len(passport.found.tasks), most)
    others = passport.found.tasks.take(positions[positions != passport.position])
    mine = attribute_gaps.measure_gaps(dataset, passport.tasks, by="class")
    theirs = attribute_gaps.measure_gaps(dataset, others, by="class") if len(others) else {}
    every_gap = []
    for name, gap in mine.items():
        size = float(gap.gap[0])
        beside = theirs[name].gap if name in theirs else np.zeros(0)
        every_gap.append(AttributeGap(name, size, gap.attribute.is_numeric, percentile(size, beside, "harder")))
    return sorted(every_gap, key=lambda g: -np.nan_to_num(g.standing.harder, nan=np.nan_to_num(g.gap)))
