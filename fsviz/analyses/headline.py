"""Why is a few-shot task hard? One hard and one easy task of a dataset, and what is known to part them.

    random tasks -> ProtoNet -> accuracy -> a task of the hardest tenth, one of the easiest
                 -> causes   -> which of them go with the accuracy, and with how many points between the two

A cause is one number per task, the higher the harder. Its effect is measured over all tasks drawn: the correlation
with the accuracy, and the slope of a straight line through them. Causes that chance would explain as well (Holm's
correction over all of them) are not named, so there may be none.

Where no backbone has seen the images, and no taxonomy tells what classes mean, ProtoNet compares bare pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fsviz import evaluation, features, taxonomy
from fsviz.difficulty import attribute_gaps
from fsviz.errors import BadInput, Missing
from fsviz.features import pixel_features
from fsviz.features.backbones import title_of
from fsviz.numerics import holm, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks
from fsviz.tasks import draw
from fsviz.taxonomy import maps
from fsviz.text import split_title

METHOD = "protonet"
N_TASKS = 1000
N_WAY, N_SHOT, N_QUERY = 5, 1, 10
AT = 0.05  # the middle of the outermost tenth
BY_PIXELS = 3  # images per class that show a task whose queries nobody classifies
MOST_PER_CLASS = 200  # images that say where the middle of a class is
MOST_OPENED = 2400  # images that a look at bare pixels may open
LEVEL = 0.05


@dataclass(frozen=True)
class CauseContrast:
    """Something that may make a task hard.

    kind       "meaning", "looks", "support", or "gap" of an attribute between support and query
    attribute  of a gap; its numbers are in standard deviations, or shares of queries where it is no number
    values     (T,) of every task, the higher the harder
    slope      accuracy (0 to 1) that one unit more goes with, over all tasks
    known      whether it goes with a lower accuracy beyond chance
    """

    kind: str
    values: np.ndarray
    correlation: evaluation.Correlation
    slope: float
    known: bool
    attribute: str = ""
    in_deviations: bool = False


@dataclass(frozen=True)
class TaskContrast:
    """A hard and an easy task of a dataset, compared.

    accuracy     (T,) of the tasks; None where no features are known, and the tasks are ordered by coarsity instead
    hard, easy   positions of the two tasks among them
    backbone     "" where there are no features: then tasks are classified by their bare pixels, or not at all
    distances    (C, C) between the split's classes, by features where there are some, else by meaning
    table        what was compared: features, or bare pixels
    """

    dataset: Dataset
    recipe: draw.Recipe
    tasks: Tasks
    hard: int
    easy: int
    distances: np.ndarray
    backbone: str = ""
    accuracy: np.ndarray | None = None
    predictions: Predictions | None = None
    table: Features | None = None

    @property
    def sees(self) -> str:
        """The inputs of the classifier, in words."""
        return f"features of {title_of(self.backbone)}" if self.backbone else "bare pixels, shrunk to 8 x 8"

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy of all tasks and the half-width of its 95% interval over tasks of these images."""
        assert self.accuracy is not None
        mean, half = mean_and_ci95(self.accuracy)
        return float(mean), float(half)

    @cached_property
    def causes(self) -> tuple[CauseContrast, ...]:
        """Possible causes of the difference, measured on first use: the tasks and their images need not wait."""
        if self.accuracy is None or self.table is None:
            return ()
        class_ids = self.dataset.split_class_ids(self.recipe.split)
        measured = _measured(self.dataset, self.table, self.tasks, class_ids, self.distances)
        return _causes(measured, self.accuracy, self.tasks)

    def points(self, cause: CauseContrast) -> float:
        """How many points (0 to 100) between the two tasks go with a cause, by its line over all tasks."""
        return float(100 * cause.slope * (cause.values[self.easy] - cause.values[self.hard]))

    def explaining(self) -> list[CauseContrast]:
        """The causes that make a point or more between the two tasks, the strongest first."""
        causes = [cause for cause in self.causes if cause.known and self.points(cause) >= 1]
        return sorted(causes, key=self.points, reverse=True)

    def positions_of(self, task: int) -> np.ndarray:
        """Places of a task's classes in the split."""
        return self.tasks.take(np.array([task])).positions(self.dataset.split_class_ids(self.recipe.split))[0]

    def names_of(self, task: int) -> list[str]:
        """Names of a task's classes, as pages call the classes of the split."""
        names = self.dataset.distinct_names(self.dataset.split_class_ids(self.recipe.split))
        return [names[at] for at in self.positions_of(task)]

    def some_queries(self, task: int, way: int, n: int) -> np.ndarray:
        """Places of up to n queries of a class to show: as mixed of right and wrong answers as all of them are."""
        assert self.predictions is not None
        there = np.flatnonzero(self.tasks.query[task, way] != PAD)
        right = self.predictions.predicted[task, way, there] == way
        n = min(n, len(there))
        n_right = int(np.clip(round(n * right.mean()), right.any(), n - (~right).any())) if n > 1 else n * int(right[0])
        return np.sort(np.concatenate([there[right][:n_right], there[~right][: n - n_right]]))

    def closest_of(self, task: int) -> tuple[str, str]:
        """The two classes of a task with the smallest distance."""
        at = self.positions_of(task)
        inside = self.distances[np.ix_(at, at)].astype(float)
        np.fill_diagonal(inside, np.inf)
        names = self.names_of(task)
        a, b = sorted(np.unravel_index(int(inside.argmin()), inside.shape))
        return names[a], names[b]

    def places_of(self, task: int) -> tuple[str, list[tuple[str, ...]]]:
        """The lowest concept above all classes of a task, and for each class the concepts between it and that one."""
        graph = taxonomy.collapse(maps.spanning_graph(self.dataset, self.recipe.split, self.recipe.dag))
        at = self.positions_of(task)
        top = taxonomy.lowest_superordinate(graph, at)
        between = []
        for position in at:
            path = graph.path_to(int(graph.class_nodes[position]))[:-1]
            between.append(tuple(graph.names[v] for v in (path[path.index(top) + 1 :] if top in path else path[1:])))
        return graph.names[top], between

    def bands(self) -> np.ndarray:
        """Ends (5,) of four ranges of accuracy with about as many tasks in each: the answers to guess from."""
        assert self.accuracy is not None
        ends = np.quantile(self.accuracy, [0, 0.25, 0.5, 0.75, 1])
        if (np.diff(ends) > 0).all():
            return ends
        low, high = float(self.accuracy.min()), float(self.accuracy.max())
        if low == high:
            raise Missing("Every task comes out the same here, so there is nothing to guess.")
        return np.linspace(low, high, 5)

    def band_of(self, task: int) -> int:
        """In which of the `bands` a task is, from 0; an end belongs to the range that it begins, the last to both."""
        assert self.accuracy is not None
        return int(np.clip(np.searchsorted(self.bands(), self.accuracy[task], side="right") - 1, 0, 3))


def contrast(dataset: Dataset) -> TaskContrast:
    """The same for the same dataset. Without features tasks differ by meaning only; without either there is none."""
    if dataset.has_features:
        return _classified(dataset, draw.default_backbone(dataset))
    if dataset.taxonomy is not None:
        return _by_meaning(dataset)
    if dataset.has_pixels:
        return _classified(dataset)
    raise Missing(
        f"{dataset.title} has neither features nor a taxonomy, so nothing is known here of which of its tasks are hard."
    )


def rule(pair: TaskContrast) -> str:
    """How the two tasks were found, in one sentence."""
    tasks, whose = f"{len(pair.tasks):,} random {pair.tasks.setting} tasks", split_title(pair.recipe.split)
    if pair.accuracy is None:
        return (
            f"Of {tasks} of {whose}, by how far apart their classes are in meaning (coarsity): the "
            "finest and the coarsest."
        )
    return (
        f"Of {tasks} of {whose}, classified by ProtoNet on {pair.sees}: the tasks in "
        "the middle of the hardest and of the easiest tenth."
    )


def describe(pair: TaskContrast, cause: CauseContrast, task: int | None = None, other: int | None = None) -> str:
    """A cause in the hard task compared with the easy one (or in two others), as the end of a sentence."""
    task, other = pair.hard if task is None else task, pair.easy if other is None else other
    here, there = float(cause.values[task]), float(cause.values[other])
    if cause.kind == "meaning":
        return f"its classes are closer in meaning (coarsity {-here:.0f} against {-there:.0f})"
    if cause.kind == "looks":
        a, b = pair.closest_of(task)
        return (
            f"its classes look more alike {f'to {title_of(pair.backbone)}' if pair.backbone else 'in their pixels'}, "
            f"{a} and {b} most of all (mean squared distance {-here:.2f} against {-there:.2f})"
        )
    if cause.kind == "support":
        return (
            f"its support images are less typical of their classes ({here:.2f} times as far from the middle of their "
            f"class as its images usually are, against {there:.2f})"
        )
    name = cause.attribute.replace("_", " ")
    if cause.in_deviations:
        return f"support and queries of a class differ more in {name} ({here:.2f} deviations against {there:.2f})"
    return f"more queries have another {name} than the support image of their class ({here:.0%} against {there:.0%})"


def summary(pair: TaskContrast) -> dict[str, Any]:
    """The two tasks, the mean, and the measured causes, as a command prints them."""
    told: dict[str, Any] = {"dataset": pair.dataset.name, "rule": rule(pair)}
    for name, task in (("hard", pair.hard), ("easy", pair.easy)):
        told[name] = {"task": task, "classes": pair.names_of(task)}
        if "coarsity" in pair.tasks.measures:
            told[name]["coarsity"] = float(pair.tasks.measures["coarsity"][task])
        if pair.accuracy is not None:
            told[name]["accuracy"] = float(pair.accuracy[task])
    if pair.accuracy is None:
        return told
    mean, half = pair.mean
    strongest = {id(cause) for cause in pair.explaining()}
    return told | {
        "mean": mean,
        "ci95": half,
        "causes": [
            {
                "cause": cause.attribute or cause.kind,
                "correlation": cause.correlation.value,
                "low": cause.correlation.low,
                "high": cause.correlation.high,
                "over": cause.correlation.ci_unit,
                "known": cause.known,
                "points": pair.points(cause),
                "explains": id(cause) in strongest,
                "words": describe(pair, cause),
            }
            for cause in sorted(pair.causes, key=pair.points, reverse=True)
        ],
    }


# Steps -----------------------------------------------------------------------------------------------------------


def _classified(dataset: Dataset, backbone: str = "") -> TaskContrast:
    """`backbone`: whose features are compared; "" for bare pixels."""
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    table = (
        features.load(dataset, backbone) if backbone else pixel_features.of_images(dataset, _some(dataset, class_ids))
    )
    sizes = np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids]
    n_way = _ways(dataset, class_ids)
    if sizes.min() < 1 + N_SHOT:
        name = dataset.classes["class_name"][class_ids[sizes.argmin()]]
        raise BadInput(
            f"A task needs two images per class, and class {name!r} of {dataset.title} has {sizes.min()} "
            f"{'with features' if backbone else 'that can be opened'}."
        )
    shape = {"n_way": n_way, "n_shot": N_SHOT, "n_query": int(min(N_QUERY, sizes.min() - N_SHOT))}
    recipe = draw.recipe_for(dataset, split=split, sampler="uniform", n_tasks=N_TASKS, seed=0, **shape)
    tasks = draw.sample_testbed(dataset, recipe, usable=table.image_ids).tasks
    answer = evaluation.evaluate(table, tasks, METHOD)
    accuracy = evaluation.task_accuracy(answer)
    distances = taxonomy.DISTANCES["features"].measure(table, class_ids)
    hard, easy = _ends(accuracy)
    return TaskContrast(dataset, recipe, tasks, hard, easy, distances, backbone, accuracy, answer, table)


def _some(dataset: Dataset, class_ids: np.ndarray) -> np.ndarray:
    """The first images of every class, few enough to be opened while somebody waits."""
    most = MOST_OPENED // len(class_ids)
    if most < 2:
        raise Missing(
            f"{dataset.title} has no features yet, and too many classes for a look at bare pixels. Extract features."
        )
    of_image = dataset.image_class_ids()
    return np.concatenate([np.flatnonzero(of_image == c)[:most] for c in class_ids])


def _by_meaning(dataset: Dataset) -> TaskContrast:
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    shape: dict[str, int] = {"n_way": _ways(dataset, class_ids)}
    if dataset.has_pixels:
        sizes = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)[class_ids]
        shape |= {"n_shot": int(max(1, min(BY_PIXELS, sizes.min() - 1))), "n_query": 1} if sizes.min() > 1 else {}
    recipe = draw.recipe_for(dataset, split=split, sampler="uniform", n_tasks=N_TASKS, seed=0, **shape)
    distances = draw.class_distances(dataset, split, recipe.distance, recipe.dag)
    tasks = draw.sample_testbed(dataset, recipe, distances=distances).tasks
    hard, easy = _ends(tasks.measures["coarsity"], 0.0)
    return TaskContrast(dataset, recipe, tasks, hard, easy, distances)


def _ways(dataset: Dataset, class_ids: np.ndarray) -> int:
    """Five classes per task, or half of few: then tasks still differ."""
    if len(class_ids) < 3:
        raise BadInput(f"{dataset.title} has too few classes to draw different tasks from.")
    return min(N_WAY, max(2, len(class_ids) // 2))


def _ends(values: np.ndarray, at: float = AT) -> tuple[int, int]:
    """Positions of the tasks in the middle of the lowest and of the highest tenth (or at another quantile from either
    end); of equal ones the first drawn."""
    ordered = np.sort(values)
    low, high = ordered[round(at * (len(values) - 1))], ordered[round((1 - at) * (len(values) - 1))]
    return int(np.argmax(values == low)), int(np.argmax(values == high))


def _measured(
    dataset: Dataset, table: Features, tasks: Tasks, class_ids: np.ndarray, distances: np.ndarray
) -> dict[tuple[str, str, bool], np.ndarray]:
    """(kind, attribute, in deviations) -> a number per task, the higher the harder."""
    by_cause: dict[tuple[str, str, bool], np.ndarray] = {}
    if dataset.taxonomy is not None and "coarsity" in tasks.measures:
        by_cause["meaning", "", False] = -tasks.measures["coarsity"]
    by_cause["looks", "", False] = -draw.measure_coarsity(Tasks(tasks.class_ids), class_ids, distances).measures[
        "coarsity"
    ]
    by_cause["support", "", False] = _untypical(table, tasks)
    for name in attribute_gaps.attribute_names(dataset):
        attribute = attribute_gaps.read_attribute(dataset, name)
        if len(attribute.values) <= attribute_gaps.MOST_VALUES:
            gap = attribute_gaps.measure_gap(attribute, tasks, "class").gap
            by_cause["gap", name, attribute.is_numeric] = gap
    return by_cause


def _untypical(table: Features, tasks: Tasks) -> np.ndarray:
    """How far the support images of a task are from the mean of their class, by what is usual there: mean (T,)."""
    order = np.argsort(table.class_ids, kind="stable")
    classes, starts, counts = np.unique(table.class_ids[order], return_index=True, return_counts=True)
    wanted = np.isin(classes, tasks.class_ids)
    distance = np.full(int(table.image_ids.max()) + 1, np.nan)
    row_of = np.zeros(len(distance), np.int64)
    row_of[table.image_ids] = np.arange(len(table.image_ids))
    support = np.unique(tasks.support)
    of_class = table.class_ids[row_of[support]]
    for class_id, start, count in zip(classes[wanted], starts[wanted], counts[wanted], strict=True):
        rows = np.asarray(table.values[np.sort(order[start : start + min(count, MOST_PER_CLASS)])], np.float32)
        middle = rows.mean(axis=0)
        usual = float(np.sqrt(((rows - middle) ** 2).sum(axis=1).mean()))
        mine = support[of_class == class_id]
        far = np.sqrt(((np.asarray(table.values[row_of[mine]], np.float32) - middle) ** 2).sum(axis=1))
        distance[mine] = far / usual if usual else 0.0
    return distance[tasks.support].mean(axis=(1, 2))


def _causes(
    measured: Mapping[tuple[str, str, bool], np.ndarray], accuracy: np.ndarray, tasks: Tasks
) -> tuple[CauseContrast, ...]:
    from scipy import stats

    correlations = {key: evaluation.correlation(accuracy, values, tasks.class_ids) for key, values in measured.items()}
    z = np.arctanh(np.clip([(c.value, c.low, c.high) for c in correlations.values()], -1 + 1e-12, 1 - 1e-12))
    half = np.maximum((z[:, 2] - z[:, 1]) / 2, 1e-12)
    p = holm(2 * stats.norm.sf(stats.norm.ppf(1 - LEVEL / 2) * np.abs(z[:, 0]) / half))
    causes = []
    for (kind, attribute, in_deviations), one_p in zip(correlations, p, strict=True):
        values, how = measured[kind, attribute, in_deviations], correlations[kind, attribute, in_deviations]
        there = np.isfinite(values)
        spread = float(values[there].std()) if there.any() else 0.0
        slope = how.value * float(accuracy[there].std()) / spread if spread else 0.0
        known = bool(one_p < LEVEL and how.value < 0)  # the higher the harder; NaN is neither
        causes.append(CauseContrast(kind, values, how, slope, known, attribute, in_deviations))
    return tuple(causes)
