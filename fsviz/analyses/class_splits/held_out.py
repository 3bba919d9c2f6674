"""The test side of a split by itself: how close its classes are, and how well a frozen backbone classifies them.

Test classes that are far from the training classes are often close to each other, and then they are hard to tell apart
whatever a network was trained on. A frozen backbone is trained on neither side, so a change of its accuracy is no cost
of the distance between the sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fsviz import evaluation, features, sampling
from fsviz.analyses.class_splits.search import RANDOM, SplitResult, distances
from fsviz.errors import BadInput
from fsviz.numerics import mean_and_ci95
from fsviz.records import ClassSplit, Dataset, Tasks
from fsviz.settings import N_QUERY
from fsviz.splits.class_features import ClassFeatures
from fsviz.studies import evaluate
from fsviz.tasks import fitting

METHOD = "protonet"
N_SHOT = 1  # more shots take most datasets to the ceiling
N_TASKS = 200  # per test side
N_RANDOM = 20  # random splits that are classified
SWAPPED = -0.5  # correlation of the scores of two splits below which their sides are swapped


@dataclass(frozen=True)
class HeldOutSide:
    """The test side of a split, or the mean over random splits.

    inside      mean distance of two test classes (unit-length features, all dimensions)
    accuracy    of ProtoNet on frozen features, in percent; None if the classes have too few images
    low, high   of the accuracy: its 95% CI over tasks; of random splits, their smallest and largest one
    inside_low, inside_high  the smallest and largest `inside` of random splits; None for one split
    setting     ways and shots of the tasks, "5-way 1-shot"
    """

    inside: float
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    inside_low: float | None = None
    inside_high: float | None = None
    setting: str = ""


def held_out_side(dataset: Dataset, classes: ClassFeatures, split: ClassSplit) -> HeldOutSide:
    """The test side of one split."""
    return held_out_sides(dataset, classes, [split])[0]


def held_out_sides(dataset: Dataset, classes: ClassFeatures, splits: Sequence[ClassSplit]) -> list[HeldOutSide]:
    """The test side of every split, classified with tasks of the shape that the first one allows."""
    parts = [split.on("test") for split in splits]
    tasks = _tasks(dataset, classes, parts)
    accuracies = _accuracies(dataset, classes, tasks)
    return [
        _side(distance_inside(classes, part), own, accuracy)
        for part, own, accuracy in zip(parts, tasks, accuracies, strict=True)
    ]


def _side(inside: float, tasks: Tasks | None, accuracy: np.ndarray | None) -> HeldOutSide:
    if tasks is None or accuracy is None:
        return HeldOutSide(inside)
    mean, half = mean_and_ci95(100 * accuracy)
    return HeldOutSide(inside, float(mean), float(mean - half), float(mean + half), setting=tasks.setting)


def held_out_at_random(dataset: Dataset, classes: ClassFeatures, split: ClassSplit) -> HeldOutSide:
    """Test sides of random splits of the same classes and sizes."""
    rng = np.random.default_rng(0)
    sizes = np.sort(split.sides)  # the same random splits for every split of these sizes
    shuffled = [replace(split, sides=rng.permutation(sizes)) for _ in range(N_RANDOM)]
    sides = held_out_sides(dataset, classes, shuffled)
    inside = [side.inside for side in sides]
    accuracy = [side.accuracy for side in sides if side.accuracy is not None]
    whole = HeldOutSide(float(np.mean(inside)), inside_low=min(inside), inside_high=max(inside))
    if len(accuracy) < len(sides):
        return whole
    mean = float(np.mean(accuracy))
    return replace(whole, accuracy=mean, low=min(accuracy), high=max(accuracy), setting=sides[0].setting)


def distance_inside(classes: ClassFeatures, class_ids: np.ndarray) -> float:
    """Mean distance of two of these classes; NaN for one."""
    points = classes.points[classes.rows_of(class_ids)]
    apart = distances(points, points)[np.triu_indices(len(points), 1)]
    return float(apart.mean()) if len(apart) else float("nan")


def _tasks(dataset: Dataset, classes: ClassFeatures, parts: Sequence[np.ndarray]) -> list[Tasks | None]:
    """N_TASKS tasks of every part; None for one with too few classes or images."""
    table = features.load(dataset, classes.backbone)
    whole = replace(dataset, splits={RANDOM: classes.class_ids})
    requested = {"split": RANDOM, "sampler": "uniform", "n_shot": N_SHOT}
    shape = fitting.fit(whole, requested, {N_QUERY.name: N_QUERY.default}, [classes.backbone]).values
    n_way, n_query = min(shape["n_way"], len(parts[0])), shape["n_query"]
    of_image = table.image_class_ids(len(dataset.image_class_ids()))
    groups, names = dataset.image_groups(), dataset.classes["class_name"].tolist()

    def sample_part(part: np.ndarray) -> Tasks | None:
        try:
            tasks = sampling.sample_uniform(part, n_way, N_TASKS, 0)
            return sampling.assign_images(tasks, of_image, N_SHOT, n_query, 0, groups, names)
        except BadInput:
            return None

    return [sample_part(part) for part in parts]


def _accuracies(dataset: Dataset, classes: ClassFeatures, tasks: Sequence[Tasks | None]) -> list[np.ndarray | None]:
    """Accuracy (N_TASKS,) of the frozen backbone on the tasks of every side, 0 to 1; all are classified at once."""
    able = [own for own in tasks if own is not None]
    if not able:
        return [None] * len(tasks)
    class_ids, support, query = (
        np.concatenate([getattr(own, side) for own in able]) for side in ("class_ids", "support", "query")
    )
    joined = Tasks(class_ids, support, query)
    predictions = evaluate.predict_tasks(dataset, classes.backbone, METHOD, {}, joined)
    of_side = iter(evaluation.task_accuracy(predictions).reshape(len(able), N_TASKS))
    return [None if own is None else next(of_side) for own in tasks]


def side_facts(side: HeldOutSide) -> dict[str, float | None]:
    """The columns of a test side in tables: inside, frozen, and the ends of both."""
    names = {"frozen": "accuracy", "frozen_low": "low", "frozen_high": "high"}
    names |= {name: name for name in ("inside", "inside_low", "inside_high")}
    return {column: getattr(side, name) for column, name in names.items()}


def target_table(
    results: Sequence[SplitResult], sides: Sequence[HeldOutSide], at_random: HeldOutSide
) -> list[dict[str, Any]]:
    """A row per target: split, asked, reached, nearest, `side_facts` and sides; the last one is of random splits."""
    swapped = {second for _, second in swaps(results)}
    rows: list[dict[str, Any]] = [
        {
            "split": f"R = {result.split.requested:g}",
            "asked": result.split.requested,
            "reached": result.split.reached,
            "nearest": result.nearest,
            **side_facts(side),
            "sides": "swapped" if result.split.requested in swapped else "",
        }
        for result, side in zip(results, sides, strict=True)
    ]
    unknown = dict.fromkeys(("asked", "reached", "nearest"))
    return [*rows, {"split": RANDOM, **unknown, **side_facts(at_random), "sides": ""}]


def side_notes(results: Sequence[SplitResult], sides: Sequence[HeldOutSide]) -> list[str]:
    """A line per target: frozen accuracy, the distance inside test, and whether the sides are swapped."""
    swapped = {second for _, second in swaps(results)}
    lines = []
    for result, side in zip(results, sides, strict=True):
        accuracy = [] if side.accuracy is None else [f"frozen {side.accuracy:.1f}%"]
        is_swapped = ["sides swapped"] if result.split.requested in swapped else []
        lines.append(" · ".join([*accuracy, f"inside test {side.inside:.2f}", *is_swapped]))
    return lines


def swaps(results: Sequence[SplitResult]) -> list[tuple[float, float]]:
    """Neighbouring targets between which train and test change sides.

    The two clusters stay about the same, but the other one has the wider distribution and becomes train.
    """
    return [
        (float(first.split.requested or 0), float(second.split.requested or 0))
        for first, second in pairwise(results)
        if first.split.scores is not None
        and second.split.scores is not None
        and np.corrcoef(first.split.scores, second.split.scores)[0, 1] < SWAPPED
    ]
