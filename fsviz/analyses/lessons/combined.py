"""Lesson 6: several causes at once (Bennequin et al. 2022, Bontonou et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.analyses.lessons.lesson import (
    METHOD,
    N_TASKS,
    SEED,
    ControlPosition,
    Example,
    Lesson,
    Question,
    example_of,
    fitted_shape,
    load_features,
    predict,
    sample_tasks,
    tie_note,
)
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import FsvizError, Missing
from fsviz.records import Dataset, Tasks
from fsviz.studies import causes, task_measures
from fsviz.tables import Column, Table
from fsviz.tasks import draw

MEASURES_TRIED = Table(
    "Measures tried",
    Column("title", "Measure"),
    Column("correlation", "r", digits=2, kind="number", help="Correlation with accuracy."),
    Column("points", "Difference explained", kind="points", help="Of the points between the two tasks."),
)


@dataclass(frozen=True)
class CombinedLesson:
    """Random tasks with every measure that does not need predictions.

    measures      (T,) per measure
    correlations  of each with accuracy
    hard, easy    positions of two tasks, in the middle of the hardest and of the easiest 10%
    """

    position: ControlPosition
    measures: pd.DataFrame
    correlations: Mapping[str, evaluation.Correlation]
    hard: int
    easy: int

    def percentile(self, name: str, task: int) -> float:
        """Share of tasks (0 to 100) that are easier by this measure, ties counted half."""
        values = self.measures[name].to_numpy() * (1 if MEASURES[name].direction == "harder" else -1)
        below, equal = (values < values[task]).sum(), (values == values[task]).sum() - 1
        return float(100 * (below + equal / 2) / (len(values) - 1))

    def points(self, name: str) -> float:
        """Points of accuracy between the two tasks that a linear fit on this measure accounts for."""
        values = self.measures[name].to_numpy()
        slope = self.correlations[name].value * self.position.accuracy.std() / values.std()
        return float(slope * (values[self.easy] - values[self.hard]))


def measure(dataset: Dataset) -> CombinedLesson:
    """Random tasks, and every measure that needs neither predictions nor the overlap of all class pairs."""
    table = load_features(dataset)
    tasks = sample_tasks(dataset, table, fitted_shape(dataset), sampler="uniform")
    position = ControlPosition("random", "random tasks", tasks, predict(dataset, table, tasks))
    measures = _fast_measures(tasks, dataset, table.backbone)
    if len(measures.columns) < 2 or position.accuracy.std() == 0:
        raise Missing(f"All tasks of {dataset.title} are alike: there are no measures to compare.")
    correlations = {
        name: evaluation.correlation(position.accuracy, measures[name].to_numpy(), tasks.class_ids) for name in measures
    }
    order = np.argsort(position.accuracy, kind="stable")
    at = round(0.05 * (len(order) - 1))
    return CombinedLesson(position, measures, correlations, int(order[at]), int(order[-1 - at]))


def ask(lesson: CombinedLesson) -> Question:
    """The question of which measure correlates most with accuracy."""
    names = list(lesson.measures)
    expected = {name: _expected_sign(name, lesson.correlations[name]) for name in names}
    significant = [name for name in names if expected[name][1] > 0]
    best = max(significant, key=lambda name: expected[name][0], default=None)
    tied: list[str] = []
    takeaway = "No measure correlates significantly with accuracy here."
    if best is not None:
        tied = [name for name in significant if name != best and expected[name][2] >= expected[best][0]]
        r = lesson.correlations[best]
        gap = lesson.position.accuracy[lesson.easy] - lesson.position.accuracy[lesson.hard]
        takeaway = (
            f"{MEASURES[best].title}: r = {r.value:.2f} (95% CI {r.low:.2f} to {r.high:.2f}), {r.value**2:.0%} of the "
            f"variance, {lesson.points(best):.0f} of the {gap:.0f} points between the two tasks. No single measure "
            f"explains a task.{tie_note([MEASURES[name].title for name in tied])}"
        )
    return Question(
        "Which measure correlates most with accuracy?",
        tuple(MEASURES[name].title for name in names),
        0 if best is None else names.index(best),
        takeaway,
        tuple(names.index(name) for name in tied),
        is_clear=best is not None and 2 * len(tied) < len(names) - 1,
    )


def tried_rows(lesson: CombinedLesson, names: Sequence[str]) -> list[dict[str, object]]:
    """Rows of MEASURES_TRIED."""
    return [
        {"title": MEASURES[name].title, "correlation": lesson.correlations[name].value, "points": lesson.points(name)}
        for name in names
    ]


def _fast_measures(tasks: Tasks, dataset: Dataset, backbone: str) -> pd.DataFrame:
    """Every measure that is fast and needs no predictions, without those that are not available here."""
    measures = {}
    for name, measure in MEASURES.items():
        if {"predictions", "overlaps"} & set(measure.needs):
            continue
        with suppress(FsvizError):
            values = task_measures.measure_tasks(tasks, dataset, backbone, [name], METHOD)[name]
            if np.isfinite(values).all() and values.std() > 0:
                measures[name] = values
    return pd.DataFrame(measures)


def _expected_sign(name: str, correlation: evaluation.Correlation) -> tuple[float, float, float]:
    """A correlation and its interval, positive if it has the expected sign."""
    if MEASURES[name].direction == "easier":
        return correlation.value, correlation.low, correlation.high
    return -correlation.value, -correlation.high, -correlation.low


def command(dataset: Dataset, position: str) -> str:
    spec = {"dataset": dataset.name, "backbone": draw.default_backbone(dataset), "split": draw.default_split(dataset)}
    shape = {name: int(size) for name, size in fitted_shape(dataset).items()}
    return causes.command(causes.check({**spec, **shape, "seed": SEED, "n_tasks": N_TASKS, "methods": [METHOD]}))


def _positions(lesson: CombinedLesson) -> Mapping[str, str]:
    return {name: MEASURES[name].title for name in lesson.measures}


def _examples(dataset: Dataset, lesson: CombinedLesson) -> list[Example]:
    accuracy, tasks = lesson.position.accuracy, {"Hard": lesson.hard, "Easy": lesson.easy}
    return [
        example_of(dataset, f"{name} task: {accuracy[task]:.0f}% correct", lesson.position, task)
        for name, task in tasks.items()
    ]


LESSON = Lesson(
    order=6,
    cause="Combined",
    title="Which cause matters most?",
    text="Real tasks combine all causes. A useful measure correlates with accuracy and differs between the hard and "
    "the easy task.",
    paper="Bennequin et al. 2022 and Bontonou et al. 2020",
    control="Measure",
    hint="Which one orders the tasks best?",
    measure=measure,
    positions=_positions,
    ask=ask,
    command=command,
    min_classes=3,
    examples=_examples,
    by_position=True,
)
