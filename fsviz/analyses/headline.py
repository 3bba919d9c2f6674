"""One hard and one easy task of a dataset, and the causes of the difference.

    random tasks -> ProtoNet -> accuracy -> a task of the hardest tenth, one of the easiest
                 -> causes   -> their correlation with accuracy, and the points between the two tasks they account for

A cause is one number per task, higher for harder tasks. Its effect is measured over all sampled tasks: the correlation
with the accuracy, and the slope of a linear fit. Only significant causes are named (Holm's correction over all of
them), so there may be none. Without features and taxonomy, ProtoNet compares pixels.
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
from fsviz.text import short_names, split_title

METHOD = "protonet"
N_TASKS = 1000
N_WAY, N_SHOT, N_QUERY = 5, 1, 10
QUANTILE = 0.05  # the middle of the outer tenth
N_IMAGES_SHOWN = 3  # images per class of a task that is not classified
MAX_PER_CLASS = 200  # images that estimate the centre of a class
MAX_OPENED = 2400  # images that may be opened for pixel features
LEVEL = 0.05
MAX_NAMES = 40  # characters of two class names in a sentence


@dataclass(frozen=True)
class CauseContrast:
    """A possible cause of the difference between two tasks.

    kind            "meaning", "looks", "support", or "gap" of an attribute between support and query
    values          (T,) of every task, higher for harder tasks
    slope           change of accuracy (0 to 1) per unit, over all tasks
    is_significant  whether accuracy falls significantly with it
    attribute       of a gap, which is in standard deviations, or a share of queries if it is not numeric
    """

    kind: str
    values: np.ndarray
    correlation: evaluation.Correlation
    slope: float
    is_significant: bool
    attribute: str = ""
    in_deviations: bool = False


@dataclass(frozen=True)
class TaskContrast:
    """A hard and an easy task of a dataset, compared.

    accuracy     (T,) of the tasks; None without features, and the tasks are ordered by coarsity instead
    hard, easy   positions of the two tasks among them
    backbone     "" without features: tasks are classified by pixels, or not at all
    distances    (C, C) between the split's classes, by features if there are any, else semantic
    table        features, or pixels as features
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
    def input_title(self) -> str:
        """Name of the inputs of the classifier."""
        return f"{title_of(self.backbone)} features" if self.backbone else "raw pixels (8 x 8)"

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy of all tasks and the half-width of its 95% interval over tasks."""
        assert self.accuracy is not None
        mean, half = mean_and_ci95(self.accuracy)
        return float(mean), float(half)

    @cached_property
    def causes(self) -> tuple[CauseContrast, ...]:
        """Possible causes of the difference, measured on first use so that the images show first."""
        if self.accuracy is None or self.table is None:
            return ()
        class_ids = self.dataset.split_class_ids(self.recipe.split)
        measured = _measured(self.dataset, self.table, self.tasks, class_ids, self.distances)
        return _causes(measured, self.accuracy, self.tasks)

    def points(self, cause: CauseContrast) -> float:
        """Points (0 to 100) between the two tasks that a cause accounts for, by its linear fit."""
        return float(100 * cause.slope * (cause.values[self.easy] - cause.values[self.hard]))

    def main_causes(self) -> list[CauseContrast]:
        """Significant causes that account for at least one point, the largest first."""
        causes = [cause for cause in self.causes if cause.is_significant and self.points(cause) >= 1]
        return sorted(causes, key=self.points, reverse=True)

    def positions_of(self, task: int) -> np.ndarray:
        """Positions of a task's classes in the split."""
        return self.tasks.take(np.array([task])).positions(self.dataset.split_class_ids(self.recipe.split))[0]

    def names_of(self, task: int) -> list[str]:
        """Distinct names of a task's classes."""
        names = self.dataset.distinct_names(self.dataset.split_class_ids(self.recipe.split))
        return [names[at] for at in self.positions_of(task)]

    def some_queries(self, task: int, way: int, n: int) -> np.ndarray:
        """Positions of up to n queries of a class, with the same share of correct ones as all of them."""
        assert self.predictions is not None
        positions = np.flatnonzero(self.tasks.query[task, way] != PAD)
        is_correct = self.predictions.predicted[task, way, positions] == way
        n = min(n, len(positions))
        n_correct = (
            int(np.clip(round(n * is_correct.mean()), is_correct.any(), n - (~is_correct).any()))
            if n > 1
            else n * int(is_correct[0])
        )
        return np.sort(np.concatenate([positions[is_correct][:n_correct], positions[~is_correct][: n - n_correct]]))

    def mistakes_of(self, task: int, way: int) -> tuple[int, int, str, int]:
        """Correct queries of a class of a task, all its queries, the class most predicted instead, and how often."""
        assert self.predictions is not None
        is_query = self.tasks.query[task, way] != PAD
        counts = np.bincount(self.predictions.predicted[task, way][is_query], minlength=self.tasks.n_way)
        n_correct, n_queries = int(counts[way]), int(is_query.sum())
        counts[way] = 0
        instead = int(counts.argmax())
        return (
            n_correct,
            n_queries,
            short_names(self.names_of(task))[instead] if counts[instead] else "",
            int(counts[instead]),
        )

    def closest_of(self, task: int) -> tuple[str, str]:
        """The two classes of a task with the smallest distance."""
        at = self.positions_of(task)
        inside = self.distances[np.ix_(at, at)].astype(float)
        np.fill_diagonal(inside, np.inf)
        names = self.names_of(task)
        a, b = sorted(np.unravel_index(int(inside.argmin()), inside.shape))
        return names[a], names[b]

    def concepts_of(self, task: int) -> tuple[str, list[tuple[str, ...]]]:
        """Lowest concept above all classes of a task, and the concepts between it and each class."""
        graph = taxonomy.collapse(maps.spanning_graph(self.dataset, self.recipe.split, self.recipe.dag))
        at = self.positions_of(task)
        top = taxonomy.lowest_superordinate(graph, at)
        between = []
        for position in at:
            path = graph.path_to(int(graph.class_nodes[position]))[:-1]
            between.append(tuple(graph.names[v] for v in (path[path.index(top) + 1 :] if top in path else path[1:])))
        return graph.names[top], between

    def bands(self) -> np.ndarray:
        """Ends (5,) of four accuracy ranges with about equally many tasks: the choices of the guessing game."""
        assert self.accuracy is not None
        ends = np.quantile(self.accuracy, [0, 0.25, 0.5, 0.75, 1])
        if (np.diff(ends) > 0).all():
            return ends
        low, high = float(self.accuracy.min()), float(self.accuracy.max())
        if low == high:
            raise Missing("All tasks have the same accuracy, so there is nothing to guess.")
        return np.linspace(low, high, 5)

    def band_of(self, task: int) -> int:
        """Index of the range of `bands` that holds a task; an end belongs to the range above it, except the last."""
        assert self.accuracy is not None
        return int(np.clip(np.searchsorted(self.bands(), self.accuracy[task], side="right") - 1, 0, 3))


def contrast(dataset: Dataset) -> TaskContrast:
    """Contrast a hard and an easy task by features, else by coarsity, else by pixels."""
    if dataset.has_features:
        return _classified(dataset, draw.default_backbone(dataset))
    if dataset.taxonomy is not None:
        return _by_coarsity(dataset)
    if dataset.has_pixels:
        return _classified(dataset)
    raise Missing(
        f"{dataset.title} has neither features nor a taxonomy, so its tasks cannot be compared. Add images or features."
    )


def rule(pair: TaskContrast) -> str:
    """Describe how the two tasks were selected."""
    tasks, split = f"{len(pair.tasks):,} random {pair.tasks.setting} tasks", split_title(pair.recipe.split)
    if pair.accuracy is None:
        return f"{tasks} of {split}: the finest and the coarsest (mean semantic distance of their classes)."
    return f"{tasks} of {split}, ProtoNet on {pair.input_title}: the middle of the hardest and of the easiest 10%."


def answer(pair: TaskContrast, causes: list[CauseContrast] | None) -> tuple[str, str]:
    """Why the hard task is harder, in a sentence, and the setting with the baselines.

    causes  the main causes, the largest first; None if they are not measured yet
    """
    tasks = f"{len(pair.tasks):,} random {pair.tasks.setting} tasks"
    if pair.accuracy is None:
        coarsity = pair.tasks.measures["coarsity"]
        return (
            "The fine-grained task should be harder: its classes are semantically closer "
            f"(coarsity {coarsity[pair.hard]:.1f} vs {coarsity[pair.easy]:.1f}).",
            f"Median of {tasks}: {np.median(coarsity):.1f}.",
        )
    mean, half = pair.mean
    setting = (
        f"ProtoNet on {pair.input_title}, {tasks}: mean {100 * mean:.1f} ± {100 * half:.1f}%, chance level "
        f"{pair.tasks.chance_level:.0%}."
    )
    gap = (
        f"The hard task is {gap_text(pair)} points below the easy one: {accuracy_text(pair, pair.hard)} vs "
        f"{accuracy_text(pair, pair.easy)} correct."
    )
    if causes is None:
        return gap, setting
    if not causes:
        none = f"none of the {len(pair.causes)} measures separates these two tasks significantly"
        return f"{gap} No single cause: {none}.", setting
    share = f"about {pair.points(causes[0]):.0f} of the {gap_text(pair)} points"
    return f"{gap} Main difference: {name_cause(pair, causes[0])}, {share}.", setting


def accuracy_text(pair: TaskContrast, task: int) -> str:
    """The accuracy of one of the two tasks, with a decimal only if one of them needs it."""
    assert pair.accuracy is not None
    return f"{100 * pair.accuracy[task]:.{_digits(pair)}f}%"


def gap_text(pair: TaskContrast) -> str:
    """Points between the two tasks, in the digits of their accuracies."""
    assert pair.accuracy is not None
    return f"{100 * (pair.accuracy[pair.easy] - pair.accuracy[pair.hard]):.{_digits(pair)}f}"


def _digits(pair: TaskContrast) -> int:
    assert pair.accuracy is not None
    percents = 100 * pair.accuracy[[pair.hard, pair.easy]].astype(float)
    return 0 if np.allclose(percents, percents.round(), atol=1e-3) else 1


def name_cause(pair: TaskContrast, cause: CauseContrast) -> str:
    """A main cause as a noun phrase, as it is in the hard task."""
    if cause.kind == "meaning":
        return "semantically closer classes"
    if cause.kind == "looks":
        return f"classes closer in {'feature' if pair.backbone else 'pixel'} space"
    if cause.kind == "support":
        return "atypical support images"
    name = cause.attribute.replace("_", " ")
    if cause.in_deviations:
        return f"a larger difference in {name} between support and queries"
    return f"more queries with a {name} missing from their support"


def describe(pair: TaskContrast, cause: CauseContrast) -> str:
    """A main cause as a noun phrase, with its value in the hard task vs the easy one."""
    value, baseline = float(cause.values[pair.hard]), float(cause.values[pair.easy])
    name = name_cause(pair, cause)
    if cause.kind == "meaning":
        return f"{name} (coarsity {-value:.0f} vs {-baseline:.0f})"
    if cause.kind == "looks":
        short = dict(zip(names := pair.names_of(pair.hard), short_names(names), strict=True))
        closest = " and ".join(short[name] for name in pair.closest_of(pair.hard))
        name += f", above all {closest}" if len(closest) <= MAX_NAMES else ""
        return f"{name} (mean squared distance {-value:.2f} vs {-baseline:.2f})"
    if cause.kind == "support":
        return f"{name} ({value:.2f}x the usual distance from their class centre vs {baseline:.2f}x)"
    return (
        f"{name} ({value:.2f} vs {baseline:.2f} SD)"
        if cause.in_deviations
        else f"{name} ({value:.0%} vs {baseline:.0%})"
    )


def summary(pair: TaskContrast) -> dict[str, Any]:
    """Summary of the two tasks, the mean and the causes, for the command line."""
    sentence, setting = answer(pair, pair.main_causes())
    result: dict[str, Any] = {"dataset": pair.dataset.name, "answer": sentence, "setting": setting, "rule": rule(pair)}
    for name, task in (("hard", pair.hard), ("easy", pair.easy)):
        result[name] = {"task": task, "classes": pair.names_of(task)}
        if "coarsity" in pair.tasks.measures:
            result[name]["coarsity"] = float(pair.tasks.measures["coarsity"][task])
        if pair.accuracy is not None:
            result[name]["accuracy"] = float(pair.accuracy[task])
    if pair.accuracy is None:
        return result
    mean, half = pair.mean
    main_causes = {id(cause) for cause in pair.main_causes()}
    return result | {
        "mean": mean,
        "ci95": half,
        "causes": [
            {
                "cause": cause.attribute or cause.kind,
                "correlation": cause.correlation.value,
                "low": cause.correlation.low,
                "high": cause.correlation.high,
                "over": cause.correlation.ci_unit,
                "significant": cause.is_significant,
                "points": pair.points(cause),
                "is_main": id(cause) in main_causes,
                "description": describe(pair, cause) if id(cause) in main_causes else "",
            }
            for cause in sorted(pair.causes, key=pair.points, reverse=True)
        ],
    }


# Steps -----------------------------------------------------------------------------------------------------------


def _classified(dataset: Dataset, backbone: str = "") -> TaskContrast:
    """Contrast by features of a backbone; "" for pixels."""
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    table = (
        features.load(dataset, backbone)
        if backbone
        else pixel_features.of_images(dataset, _first_images(dataset, class_ids))
    )
    sizes = np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids]
    n_way = _ways(dataset, class_ids)
    if sizes.min() < 1 + N_SHOT:
        name = dataset.classes["class_name"][class_ids[sizes.argmin()]]
        raise BadInput(
            f"A task needs two images per class. Class {name!r} of {dataset.title} has {sizes.min()} "
            f"{'with features' if backbone else 'readable'}. Add images or remove the class."
        )
    shape = {"n_way": n_way, "n_shot": N_SHOT, "n_query": int(min(N_QUERY, sizes.min() - N_SHOT))}
    recipe = draw.recipe_for(dataset, split=split, sampler="uniform", n_tasks=N_TASKS, seed=0, **shape)
    tasks = draw.sample_testbed(dataset, recipe, usable=table.image_ids).tasks
    predictions = evaluation.evaluate(table, tasks, METHOD)
    accuracy = evaluation.task_accuracy(predictions)
    distances = taxonomy.DISTANCES["features"].measure(table, class_ids)
    hard, easy = _ends(accuracy)
    return TaskContrast(dataset, recipe, tasks, hard, easy, distances, backbone, accuracy, predictions, table)


def _first_images(dataset: Dataset, class_ids: np.ndarray) -> np.ndarray:
    """The first images of every class, few enough to open at once."""
    max_images = MAX_OPENED // len(class_ids)
    if max_images < 2:
        raise Missing(f"{dataset.title} has no features, and too many classes to compare raw pixels. Extract features.")
    image_classes = dataset.image_class_ids()
    return np.concatenate([np.flatnonzero(image_classes == c)[:max_images] for c in class_ids])


def _by_coarsity(dataset: Dataset) -> TaskContrast:
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    shape: dict[str, int] = {"n_way": _ways(dataset, class_ids)}
    if dataset.has_pixels:
        sizes = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)[class_ids]
        shape |= {"n_shot": int(max(1, min(N_IMAGES_SHOWN, sizes.min() - 1))), "n_query": 1} if sizes.min() > 1 else {}
    recipe = draw.recipe_for(dataset, split=split, sampler="uniform", n_tasks=N_TASKS, seed=0, **shape)
    distances = draw.class_distances(dataset, split, recipe.distance, recipe.dag)
    tasks = draw.sample_testbed(dataset, recipe, distances=distances).tasks
    hard, easy = _ends(tasks.measures["coarsity"], 0.0)
    return TaskContrast(dataset, recipe, tasks, hard, easy, distances)


def _ways(dataset: Dataset, class_ids: np.ndarray) -> int:
    """Five classes per task, or half of them if there are few, so that tasks differ."""
    if len(class_ids) < 3:
        raise BadInput(f"{dataset.title} needs at least 3 classes for different tasks. Got {len(class_ids)}.")
    return min(N_WAY, max(2, len(class_ids) // 2))


def _ends(values: np.ndarray, at: float = QUANTILE) -> tuple[int, int]:
    """Positions of the tasks at a quantile from either end, by default the middle of the outer tenths; ties: first."""
    ordered = np.sort(values)
    low, high = ordered[round(at * (len(values) - 1))], ordered[round((1 - at) * (len(values) - 1))]
    return int(np.argmax(values == low)), int(np.argmax(values == high))


def _measured(
    dataset: Dataset, table: Features, tasks: Tasks, class_ids: np.ndarray, distances: np.ndarray
) -> dict[tuple[str, str, bool], np.ndarray]:
    """Values per task, higher for harder tasks, by (kind, attribute, in_deviations)."""
    by_cause: dict[tuple[str, str, bool], np.ndarray] = {}
    if dataset.taxonomy is not None and "coarsity" in tasks.measures:
        by_cause["meaning", "", False] = -tasks.measures["coarsity"]
    by_cause["looks", "", False] = -draw.measure_coarsity(Tasks(tasks.class_ids), class_ids, distances).measures[
        "coarsity"
    ]
    by_cause["support", "", False] = _atypical(table, tasks)
    for name in attribute_gaps.attribute_names(dataset):
        attribute = attribute_gaps.read_attribute(dataset, name)
        if len(attribute.values) <= attribute_gaps.MOST_VALUES:
            gap = attribute_gaps.measure_gap(attribute, tasks, "class").gap
            by_cause["gap", name, attribute.is_numeric] = gap
    return by_cause


def _atypical(table: Features, tasks: Tasks) -> np.ndarray:
    """Mean distance (T,) of support images from their class centre, relative to the usual distance there."""
    order = np.argsort(table.class_ids, kind="stable")
    classes, starts, counts = np.unique(table.class_ids[order], return_index=True, return_counts=True)
    is_used = np.isin(classes, tasks.class_ids)
    distance = np.full(int(table.image_ids.max()) + 1, np.nan)
    row_of = np.zeros(len(distance), np.int64)
    row_of[table.image_ids] = np.arange(len(table.image_ids))
    support = np.unique(tasks.support)
    support_classes = table.class_ids[row_of[support]]
    for class_id, start, count in zip(classes[is_used], starts[is_used], counts[is_used], strict=True):
        rows = np.asarray(table.values[np.sort(order[start : start + min(count, MAX_PER_CLASS)])], np.float32)
        centre = rows.mean(axis=0)
        typical = float(np.sqrt(((rows - centre) ** 2).sum(axis=1).mean()))
        images = support[support_classes == class_id]
        distances = np.sqrt(((np.asarray(table.values[row_of[images]], np.float32) - centre) ** 2).sum(axis=1))
        distance[images] = distances / typical if typical else 0.0
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
    for (kind, attribute, in_deviations), p_value in zip(correlations, p, strict=True):
        values, correlation = measured[kind, attribute, in_deviations], correlations[kind, attribute, in_deviations]
        is_finite = np.isfinite(values)
        spread = float(values[is_finite].std()) if is_finite.any() else 0.0
        slope = correlation.value * float(accuracy[is_finite].std()) / spread if spread else 0.0
        is_significant = bool(p_value < LEVEL and correlation.value < 0)  # NaN is not significant
        causes.append(CauseContrast(kind, values, correlation, slope, is_significant, attribute, in_deviations))
    return tuple(causes)
