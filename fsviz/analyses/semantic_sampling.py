"""Semantic task sampling (Bennequin et al. 2022): coarsity, class balance and example tasks of testbeds.

Tasks are sampled by fsviz.tasks.draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fsviz import evaluation, features, sampling, taxonomy
from fsviz.difficulty.measures.coarsity import coarsity as coarsity_of
from fsviz.errors import FsvizError, Missing
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset, Predictions, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.studies import evaluate
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.text import short_names

CLASS_PAIRS = Table(
    "Pairs of classes",
    Column("distance", "Distance", digits=2, kind="number", width=70),
    Column("a_picture", "Image", kind="image", width=44),
    Column("a", "Class", kind="class", width=104),
    Column("b_picture", "Image", kind="image", width=44),
    Column("b", "Other class", kind="class", width=104),
)


def summarise(testbed: Testbed, dataset: Dataset) -> dict[str, Any]:
    """Quartiles of the coarsity, and task counts of the rarest and most common class of the split."""
    if "coarsity" not in testbed.tasks.measures:
        raise Missing(f"Testbed {testbed.name!r} has no coarsity. Choose a distance that this dataset allows.")
    values = np.quantile(testbed.tasks.measures["coarsity"], [0, 0.25, 0.5, 0.75, 1])
    counts = class_counts(testbed, dataset)
    return {
        "n_tasks": len(testbed.tasks),
        "quantiles": {name: float(v) for name, v in zip(("0", "25", "50", "75", "100"), values, strict=True)},
        "class_counts": {"min": int(counts.min()), "max": int(counts.max())},
    }


def headline(testbed: Testbed, uniform: Testbed, second: Testbed | None = None) -> tuple[str, str]:
    """The coarsity of a testbed compared with uniform tasks, as a bold sentence and its addition.

    second  another testbed on the same axes, called B
    """
    title = SAMPLERS[str(testbed.recipe["sampler"])].title
    values = testbed.tasks.measures["coarsity"]
    median, baseline = (float(np.median(bed.tasks.measures["coarsity"])) for bed in (testbed, uniform))
    more = ""
    if testbed is uniform:
        low, high = (coarsity_text(float(value)) for value in np.quantile(values, [0.25, 0.75]))
        sentence = f"{title} tasks: median coarsity {coarsity_text(median)}."
        more = f"Half of the tasks lie between {low} and {high}; lower is finer."
    elif np.ptp(uniform.tasks.measures["coarsity"]) < 1e-9:
        sentence = f"{title} tasks: median coarsity {coarsity_text(median)} vs {coarsity_text(baseline)} for uniform."
        more = "All uniform tasks have the same coarsity."
    else:
        sentence = (
            f"{title} tasks: median coarsity {coarsity_text(median)} vs {coarsity_text(baseline)} for uniform; "
            f"{share_finer(testbed, uniform):.0%} are fine-grained ({share_finer(uniform, uniform):.0%} when uniform)."
        )
        more = "Fine-grained: coarsity in the lowest 5% of uniform tasks."
    if second is not None:
        median = float(np.median(second.tasks.measures["coarsity"]))
        more += f" B: median coarsity {coarsity_text(median)}, {share_finer(second, uniform):.0%} fine-grained."
    return sentence, more


def coarsity_text(value: float) -> str:
    return f"{value:.{coarsity_digits(value)}f}"


def coarsity_digits(value: float) -> int:
    """Digits after the point that tell coarsities of this size apart."""
    return 1 if value >= 10 else 2 if value >= 1 else 3


QUICK_METHOD = "protonet"
_QUICK_SECONDS = 0.5  # for a list of tasks, by a count of operations


def quick_predictions(dataset: Dataset, tasks: Tasks, backbone: str = "") -> Predictions | None:
    """Predictions of ProtoNet; None without features of all images, or if they take too long for a list of tasks."""
    if not dataset.has_features or not tasks.has_images:
        return None
    backbone = backbone or draw.default_backbone(dataset)
    settings = METHODS[QUICK_METHOD].checked()
    try:
        evaluation.check_tasks(features.load(dataset, backbone), tasks)
        if evaluate.guess_seconds(dataset, backbone, QUICK_METHOD, settings, tasks) > _QUICK_SECONDS:
            return None
        return evaluate.predict_tasks(dataset, backbone, QUICK_METHOD, settings, tasks)
    except FsvizError:  # an image without features
        return None


def task_notes(listed: np.ndarray, coarsity: np.ndarray | None, predictions: Predictions | None) -> dict[int, str]:
    """The note of every listed task: its coarsity and its accuracy, as far as they are available."""
    accuracy = None if predictions is None else evaluation.task_accuracy(predictions)
    notes = {}
    for i, task in enumerate(listed.tolist()):
        parts = [] if coarsity is None else [f"coarsity {coarsity_text(float(coarsity[task]))}"]
        parts += [] if accuracy is None else [f"{100 * accuracy[i]:.0f}% correct"]
        notes[task] = ", ".join(parts)
    return notes


def class_counts(testbed: Testbed, dataset: Dataset) -> np.ndarray:
    """Number of tasks (C,) with each class of the testbed's split, in split order."""
    class_ids = dataset.split_class_ids(str(testbed.recipe["split"]))
    ids = testbed.tasks.class_ids
    return np.bincount(ids[ids != PAD], minlength=dataset.n_classes)[class_ids]


def testbed_coarsity(
    testbed: Testbed,
    dataset: Dataset,
    distance: str = str(taxonomy.DISTANCE.default),
    dag: str = str(taxonomy.DAG.default),
    backbone: str | None = None,
) -> Testbed:
    """The testbed with its coarsity measured by this distance."""
    split = str(testbed.recipe["split"])
    distances = draw.class_distances(dataset, split, distance, dag, backbone)
    tasks = draw.measure_coarsity(testbed.tasks, dataset.split_class_ids(split), distances)
    return Testbed(testbed.name, tasks, testbed.recipe)


@dataclass(frozen=True)
class CoarsityBins:
    """Histograms of several testbeds over the same bins: edges (B + 1,), counts name -> (B,), medians."""

    edges: np.ndarray
    counts: Mapping[str, np.ndarray]
    medians: Mapping[str, float]

    def bin_of(self, values: np.ndarray) -> np.ndarray:
        """The bin of every value; the last bin holds its upper edge."""
        return np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, len(self.edges) - 2)


def coarsity_bins(testbeds_by_name: Mapping[str, Testbed], n_bins: int = 50) -> CoarsityBins:
    """Histograms of coarsity from zero to the largest value of all, over at most n_bins bins with round edges."""
    values = {name: testbed.tasks.measures["coarsity"] for name, testbed in testbeds_by_name.items()}
    largest = max(float(v.max()) for v in values.values()) or 1.0
    scale = 10.0 ** np.floor(np.log10(largest / n_bins))
    width = scale * next(step for step in (1, 2, 2.5, 5, 10) if largest / (step * scale) <= n_bins)
    edges = np.arange(int(np.ceil(largest / width - 1e-9)) + 1) * width
    bins = CoarsityBins(edges, {}, {name: float(np.median(v)) for name, v in values.items()})
    counts = {name: np.bincount(bins.bin_of(v), minlength=len(edges) - 1) for name, v in values.items()}
    return replace(bins, counts=counts)


def share_finer(testbed: Testbed, uniform: Testbed, quantile: float = 0.05) -> float:
    """Share of tasks with a coarsity at or below this quantile of uniform tasks."""
    limit = np.quantile(uniform.tasks.measures["coarsity"], quantile)
    return float((testbed.tasks.measures["coarsity"] <= limit).mean())


def tasks_near_quantile(testbed: Testbed, quantile: float, n: int = 6) -> np.ndarray:
    """Positions of n tasks around this coarsity quantile of the testbed, the finest first."""
    order = np.argsort(testbed.tasks.measures["coarsity"], kind="stable")
    start = round(quantile * (len(order) - 1)) - n // 2
    start = min(max(start, 0), max(len(order) - n, 0))
    return order[start : start + n]


def example_images(dataset: Dataset, class_ids: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Example images (len(class_ids), n), padded if a class has fewer."""
    image_classes = dataset.image_class_ids()
    image_ids = np.full((len(class_ids), n), PAD, dtype=np.int64)
    for row, class_id in enumerate(class_ids):
        images = np.flatnonzero(image_classes == class_id)
        picks = np.random.default_rng((seed, int(class_id))).permutation(images)[:n]
        image_ids[row, : len(picks)] = picks
    return image_ids


def smallest_class(dataset: Dataset, split: str) -> int | None:
    """Images of the smallest class of a split, None if the counts are not known."""
    if dataset.images is None and dataset.n_images is None:
        return None
    sizes = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)
    return int(sizes[dataset.split_class_ids(split)].min())


def warm_up() -> None:
    """Load the compiled samplers, so that the first testbed is quick."""
    line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    sampling.sample_semantic(line, np.arange(3), 2, 1, 1.0, 1.0, 0)
    sampling.assign_images(sampling.sample_uniform(np.arange(3), 2, 1, 0), np.arange(3).repeat(2), 1, 1, 0)


# Custom tasks --------------------------------------------------------------------------------------------------


def distance_answer(distances: np.ndarray, names: Sequence[str], title: str) -> tuple[str, str]:
    """The closest two classes and the median over all pairs, and a sentence about ties.

    title  of the distance
    """
    first, second = np.triu_indices(len(names), 1)
    values = distances[first, second]
    if not len(values):
        return f"{names[0]} is the only class here." if len(names) else "There are no classes here.", ""
    names, closest = short_names(names), int(values.argmin())
    n_ties = int((values < values[closest] + 1e-9).sum()) - 1
    ties = f"; {n_ties:,} other {'pair is' if n_ties == 1 else 'pairs are'} as close" if n_ties else ""
    return (
        f"Closest classes: {names[first[closest]]} and {names[second[closest]]} (distance {values[closest]:.2f}). "
        f"Median distance: {np.median(values):.2f}.",
        f"{title}, {len(names):,} classes{ties}.",
    )


@dataclass(frozen=True)
class ClassSet:
    """A custom task: its coarsity, lowest superordinate, and the share of uniform tasks that are finer."""

    coarsity: float
    superordinate: str
    superordinate_classes: int
    share_finer: float


def class_set(graph: taxonomy.Dag, distances: np.ndarray, positions: Sequence[int]) -> ClassSet:
    """Measure the task of the classes at these positions of the split."""
    coarsity = float(coarsity_of(distances, np.asarray(positions)))
    node = taxonomy.lowest_superordinate(graph, positions)
    uniform = sampling.sample_uniform(np.arange(len(distances)), len(positions), 2000, 0)
    finer = coarsity_of(distances, uniform.class_ids) < coarsity - 1e-9
    return ClassSet(coarsity, graph.names[node], int(graph.below[node].sum()), float(finer.mean()))
