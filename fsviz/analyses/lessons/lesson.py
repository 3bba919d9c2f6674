"""A lesson: its declaration, what it measures, and the question with the answer that the measurements give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fsviz import evaluation, features
from fsviz.numerics import mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks
from fsviz.settings import RawSettings, Settings
from fsviz.studies import evaluate
from fsviz.tasks import draw, fitting

METHOD = "protonet"
SHAPE: dict[str, int] = {"n_way": 5, "n_shot": 1, "n_query": 10}
N_TASKS = 200
SEED = 0
HARDLY = 5.0  # points of accuracy: an interval within them is no difference
N_PRINTED = 4  # queries per class of a task on a worksheet


@dataclass(frozen=True)
class Difference:
    """A difference in points of accuracy, and the half-width of its 95% CI."""

    points: float
    half_width: float

    @property
    def low(self) -> float:
        return self.points - self.half_width

    @property
    def high(self) -> float:
        return self.points + self.half_width

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def is_small(self) -> bool:
        """Whether the interval holds no difference of HARDLY points or more."""
        return self.low > -HARDLY and self.high < HARDLY

    def __str__(self) -> str:
        return f"{self.points:.1f} ± {self.half_width:.1f} points"


@dataclass(frozen=True)
class ControlPosition:
    """A position of a control with its tasks and predictions.

    name   used in links
    facts  further numbers of the position by name
    """

    name: str
    title: str
    tasks: Tasks
    predictions: Predictions
    facts: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def accuracy(self) -> np.ndarray:
        """(T,) in percent."""
        return 100 * evaluation.task_accuracy(self.predictions)

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy in percent and the half-width of its interval."""
        mean, half_width = mean_and_ci95(self.accuracy)
        return float(mean), float(half_width)

    @property
    def summary(self) -> str:
        """Mean accuracy with its interval."""
        return f"{self.mean[0]:.1f} ± {self.mean[1]:.1f}%"


@dataclass(frozen=True)
class Question:
    """A question about the measurements of a lesson.

    correct   position of the correct answer among the options
    tied      positions of answers that are not significantly different from it
    takeaway  the numbers and what they mean, shown after the answer
    is_clear  whether the measurements exclude the other answers: no other question is asked
    """

    text: str
    options: tuple[str, ...]
    correct: int
    takeaway: str
    tied: tuple[int, ...] = ()
    is_clear: bool = True


@dataclass(frozen=True)
class Curve:
    """Accuracy (%) with 95% CI at every position of a control.

    chance_level  accuracy of guessing (%), if it is the same everywhere
    in_order      whether the positions have an order
    """

    titles: Sequence[str]
    means: Sequence[float]
    half_widths: Sequence[float]
    x_title: str
    chance_level: float | None = None
    in_order: bool = True


@dataclass(frozen=True)
class Example:
    """Images that a worksheet prints: rows of a class name and its image_ids, the support of a task first."""

    title: str
    rows: Sequence[tuple[str, Sequence[int]]]


@dataclass(frozen=True)
class Lesson:
    """One cause of difficulty to try out, declared in a file of this folder as LESSON.

    order        position among the lessons, from 1
    cause        name of the tab
    title        the question of the lesson; text explains it in two sentences
    control      label of the control; hint says what to do with it
    measure      measurements of a dataset: the first argument of the functions below
    positions    positions of the control: names in links -> titles
    ask          the question with its answers
    command      command that measures what a position shows
    needs        what a dataset must have
    min_classes  fewest classes that the question makes sense for
    why_not      a further reason against a dataset, "" for none
    curve        accuracy by position; None if positions are not accuracies
    examples     images for a worksheet
    by_position  whether the position of the control is the answer
    """

    order: int
    cause: str
    title: str
    text: str
    paper: str
    control: str
    hint: str
    measure: Callable[[Dataset], Any]
    positions: Callable[[Any], Mapping[str, str]]
    ask: Callable[[Any], Question]
    command: Callable[[Dataset, str], str]
    needs: tuple[str, ...] = ("features",)
    min_classes: int = 2
    why_not: Callable[[Dataset], str] = lambda dataset: ""
    curve: Callable[[Any], Curve] | None = None
    examples: Callable[[Dataset, Any], Sequence[Example]] = lambda dataset, measured: ()
    by_position: bool = False

    def missing(self, dataset: Dataset) -> str:
        """The reason why the dataset cannot give this lesson, as "needs contexts"; "" if it can."""
        lacking = [need for need in self.needs if need not in dataset.capabilities]
        if lacking:
            return f"needs {' and '.join('a taxonomy' if need == 'taxonomy' else need for need in lacking)}"
        n_classes = len(dataset.split_class_ids(draw.default_split(dataset)))
        if n_classes < self.min_classes:
            return f"needs {self.min_classes} classes, and there are {n_classes}"
        return self.why_not(dataset)


def titles(positions: Sequence[ControlPosition]) -> dict[str, str]:
    """Titles of the positions by name."""
    return {position.name: position.title for position in positions}


def curve_of(positions: Sequence[ControlPosition], x_title: str, in_order: bool = True) -> Curve:
    """Mean accuracies of the positions."""
    means, half_widths = zip(*(position.mean for position in positions), strict=True)
    names = [position.title for position in positions]
    return Curve(names, means, half_widths, x_title, 100 * positions[0].tasks.chance_level, in_order)


def example_of(dataset: Dataset, title: str, position: ControlPosition, task: int) -> Example:
    """The support and some queries of a task."""
    tasks = position.tasks
    class_ids = tasks.class_ids[task]
    names = dataset.short_names(class_ids[class_ids != PAD])
    rows = []
    for way, name in enumerate(names):
        support, query = (ids[task, way][ids[task, way] != PAD] for ids in (tasks.support, tasks.query))
        rows.append((name, [*support.tolist(), *query[:N_PRINTED].tolist()]))
    return Example(title, rows)


def typical(positions: Sequence[ControlPosition], at: int, paired: bool) -> int:
    """Task with an accuracy nearest to the mean at a position.

    paired  whether all positions have the same queries: then nearest to the means of all of them
    """
    compared = positions if paired else [positions[at]]
    return int(np.sum([(position.accuracy - position.mean[0]) ** 2 for position in compared], axis=0).argmin())


def tie_note(names: Sequence[str]) -> str:
    return f" Not significantly different: {', '.join(names)}." if names else ""


def load_features(dataset: Dataset) -> Features:
    return features.load(dataset, draw.default_backbone(dataset))


def fitted_shape(dataset: Dataset, **sampler: object) -> Settings:
    """Ways, shots and queries of a lesson, lowered to what the dataset can give."""
    return fitting.fit(dataset, {**sampler}, SHAPE, [draw.default_backbone(dataset)]).values


def sample_tasks(dataset: Dataset, table: Features, shape: RawSettings, **sampler: object) -> Tasks:
    """The tasks of a position, of images with features."""
    recipe = recipe_of(dataset, shape, **sampler)
    return draw.sample_testbed(dataset, recipe, usable=table.image_ids).tasks


def recipe_of(dataset: Dataset, shape: RawSettings, **sampler: object) -> draw.Recipe:
    settings = {**shape, "split": draw.default_split(dataset), "n_tasks": N_TASKS, "seed": SEED}
    return draw.recipe_for(dataset, **{**settings, **sampler})


def predict(dataset: Dataset, table: Features, tasks: Tasks) -> Predictions:
    return evaluate.predict_tasks(dataset, table.backbone, METHOD, {}, tasks)


def mean_difference(values: np.ndarray) -> Difference:
    """Mean of differences task by task."""
    mean, half_width = mean_and_ci95(values)
    return Difference(float(mean), float(half_width))


def paired_difference(first: ControlPosition, second: ControlPosition) -> Difference:
    """Points lost from the first to the second position, paired by task: they have the same queries."""
    return mean_difference(first.accuracy - second.accuracy)


def unpaired_difference(first: ControlPosition, second: ControlPosition) -> Difference:
    """Points lost from the first to the second position, which have different tasks."""
    return Difference(first.mean[0] - second.mean[0], float(np.hypot(first.mean[1], second.mean[1])))
