"""Similarities of classes, and the graph that each of them gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fsviz import datasets, evaluation, features, sampling
from fsviz.difficulty import class_confusion
from fsviz.errors import BadInput, Missing
from fsviz.evaluation.intervals import Estimate
from fsviz.features.backbones import title_of
from fsviz.records import Dataset, Features, HeadlineNumber, Progress, Tasks
from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies import evaluate as evaluation_study
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES
from fsviz.text import short_names

N_SHOT, N_QUERY, N_TASKS = 5, 10, 20  # of the two-way tasks that show the errors on a pair


@dataclass(frozen=True)
class ClassSimilarity:
    """A way to measure how similar two classes are.

    superlative          the start of the sentence that names the most similar pair
    needs                what it is computed from
    much, little, never  descriptions of a pair with a large, a small and a zero value
    """

    title: str
    description: str
    superlative: str
    unit: str  # "" for numbers without one
    needs: Literal["features", "taxonomy", "run"]
    much: str
    little: str
    never: str


SIMILARITIES: dict[str, ClassSimilarity] = {
    "confusion": ClassSimilarity(
        "Class overlap (Louvain)",
        "entropy of the class labels in communities of similar images, in bits. 0: every community holds one class; "
        "1: communities are independent of the class.",
        "Most confused",
        "bits",
        "features",
        "often confused",
        "rarely confused",
        "never confused",
    ),
    "cosine": ClassSimilarity(
        "Cosine of mean features",
        "cosine of the mean features of the two classes; ignores how spread out the classes are.",
        "Most similar mean features",
        "",
        "features",
        "similar on average",
        "dissimilar on average",
        "dissimilar on average",
    ),
    "error": ClassSimilarity(
        "Errors on the pair (ProtoNet)",
        f"share of incorrect predictions of ProtoNet in tasks of these two classes, up to {N_TASKS} tasks with "
        f"{N_SHOT} support images per class.",
        "Most errors",
        "% incorrect",
        "features",
        "often predicted as each other",
        "rarely predicted as each other",
        "never predicted as each other",
    ),
    "run": ClassSimilarity(
        "Errors in a run",
        "share of queries of the two classes that a recorded run predicts as the other, in tasks that hold both.",
        "Most errors",
        "% predicted as the other",
        "run",
        "often predicted as each other",
        "rarely predicted as each other",
        "never predicted as each other",
    ),
    **{
        name: ClassSimilarity(
            f"Closeness ({distance.title})",
            f"1 minus the distance as a share of the largest in the split. Distance: {distance.description}",
            "Semantically closest" if distance.needs == "taxonomy" else "Closest in feature space",
            "",
            distance.needs,
            "semantically close" if distance.needs == "taxonomy" else "close in feature space",
            "semantically far" if distance.needs == "taxonomy" else "far in feature space",
            "semantically far" if distance.needs == "taxonomy" else "far in feature space",
        )
        for name, distance in DISTANCES.items()
    },
}
SIMILARITY = Setting(
    "likeness",
    "Similarity",
    "How the similarity of two classes is measured.",
    "choice",
    "confusion",
    choices={name: similarity.title for name, similarity in SIMILARITIES.items() if similarity.needs != "run"},
)


def possible_similarities(dataset: Dataset) -> list[str]:
    """The similarities that need no run and that are available for this dataset."""
    available = {"features": bool(features.available(dataset)), "taxonomy": dataset.taxonomy is not None}
    return [name for name in SIMILARITY.choices if available[SIMILARITIES[name].needs]]


def graph_of_predictions(
    spec: evaluation_study.ResolvedSpec, chunks: Sequence[Mapping[str, np.ndarray]], which: int, split: str
) -> ClassGraph:
    """The graph of a split's classes by how often entry number `which` of an evaluation confuses two of them.

    spec, chunks  of the run, the spec with its "folder"
    """
    dataset = datasets.load(spec["dataset"])
    entry = evaluation_study.entries(spec)[which]
    predictions = evaluation_study.predictions(spec, chunks, which)
    tasks = evaluation_study.entry_tasks(spec, entry, stop=len(predictions))
    counts = evaluation.pair_confusion(predictions, tasks)
    class_ids = dataset.split_class_ids(split)
    pairs = pairs_of(class_ids, class_ids)
    position = np.full(dataset.n_classes, len(counts.class_ids))
    position[counts.class_ids] = np.arange(len(counts.class_ids))
    confused, n_queries = (np.pad(values, (0, 1)) for values in (counts.confused, counts.n_queries))
    a, b = position[pairs].T
    both = n_queries[a, b] + n_queries[b, a]
    values = np.where(both > 0, 100 * (confused[a, b] + confused[b, a]) / np.maximum(both, 1), np.nan)
    if np.isnan(values).all():
        raise Missing(f"No task of this run holds two classes of split {split!r}. Choose a run on tasks of that split.")
    return graph_of(dataset, "run", f"{entry.label} on {title_of(entry.backbone)}", class_ids, class_ids, values)


def pairs_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(P, 2) class_ids: every two of the same classes once, or every row with every column but itself."""
    if np.array_equal(rows, columns):
        first, second = np.triu_indices(len(rows), 1)
        return np.stack([rows[first], rows[second]], 1)
    pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def graph_of(
    dataset: Dataset, kind: str, source: str, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> ClassGraph:
    """The record of the values (P,) of `pairs_of` rows and columns."""
    pairs = pairs_of(rows, columns)
    weights = np.full((len(rows), len(columns)), np.nan)
    row, column = _positions(rows, pairs[:, 0]), _positions(columns, pairs[:, 1])
    weights[row, column] = values
    if np.array_equal(rows, columns):
        weights[column, row] = values
    similarity = SIMILARITIES[kind]
    names = (tuple(dataset.distinct_names(rows)), tuple(dataset.distinct_names(columns)))
    return ClassGraph(kind, similarity.title, similarity.unit, source, rows, columns, *names, weights)


def _positions(class_ids: np.ndarray, requested: np.ndarray) -> np.ndarray:
    order = np.argsort(class_ids)
    return order[np.searchsorted(class_ids, requested, sorter=order)]


def features_of(dataset: Dataset, backbone: str) -> Features:
    try:
        return features.load(dataset, backbone or features.required(dataset)[0])
    except Missing as error:
        if dataset.taxonomy is None:
            raise
        raise Missing(f"{error} Or compare classes by semantic distance (likeness 'jiang_conrath').") from error


def class_names(dataset: Dataset) -> dict[int, str]:
    return dict(enumerate(dataset.classes["class_name"].astype(str)))


def mean_cosines(table: Features, class_ids: np.ndarray) -> np.ndarray:
    """(C, C) cosines of the classes' means of unit-length features."""
    class_confusion.check_classes(table, class_ids, 0, "plain")
    means = np.stack([evaluation.features_mean(table, np.array([c]), unit_length=True) for c in class_ids])
    return class_confusion.cosines(means).astype(float)


def closeness(dataset: Dataset, class_ids: np.ndarray, distance: str, backbone: str) -> np.ndarray:
    """1 - D / max D (C, C) of the classes, by one of the DISTANCES over the smallest split that holds them all."""
    fitting = [s for s in (*dataset.splits, "all") if np.isin(class_ids, dataset.split_class_ids(s)).all()]
    split = min(fitting, key=lambda s: len(dataset.split_class_ids(s)))
    distances = draw.class_distances(dataset, split, distance, backbone=backbone or None)
    position = _positions(dataset.split_class_ids(split), class_ids)
    distances = distances[np.ix_(position, position)]
    return 1 - distances / (distances.max() or 1.0)


def pair_errors(table: Features, pairs: np.ndarray, seed: int, progress: Progress | None = None) -> np.ndarray:
    """Share of incorrect predictions (P,) of ProtoNet on tasks of every pair; fewer shots if classes are small."""
    of_image = table.image_class_ids(int(table.image_ids.max()) + 1)
    smallest = int(np.bincount(table.class_ids, minlength=pairs.max() + 1)[np.unique(pairs)].min())
    if smallest < 2:
        raise BadInput("Errors on a pair need at least two images per class. Choose a split with larger classes.")
    n_shot, n_tasks = min(N_SHOT, smallest // 2), tasks_per_pair(len(pairs))
    groups = None if table.groups is None else table.groups[: len(of_image)]
    tasks = Tasks(np.repeat(pairs, n_tasks, axis=0))
    tasks = sampling.assign_images(tasks, of_image, n_shot, min(N_QUERY, smallest - n_shot), seed, groups)
    accuracy = evaluation.task_accuracy(evaluation.evaluate(table, tasks, "protonet", progress=progress))
    return 1 - accuracy.reshape(len(pairs), n_tasks).mean(axis=1)


def tasks_per_pair(n_pairs: int) -> int:
    return max(1, min(N_TASKS, 20_000 // n_pairs))


def describe_versus(first: ClassGraph, second: ClassGraph) -> list[str]:
    """Flags that compare the first graph with the second; a recorded run has none."""
    if SIMILARITIES[second.kind].needs == "run":
        return []
    kind = ["--versus", second.kind] if second.kind != first.kind else []
    return kind + (["--versus-backbone", second.source] if second.source not in ("", first.source) else [])


def headline(graph: ClassGraph) -> list[HeadlineNumber]:
    """The mean over pairs of classes."""
    estimate = mean(graph)
    return [HeadlineNumber.around("mean", "Mean class overlap", estimate.mean, estimate.ci95, "bits", "classes")]


def mean(graph: ClassGraph) -> Estimate:
    """The mean over pairs with its 95% CI over classes: pairs that share a class are not independent."""
    i, j, weights = graph.edges()
    tasks = Tasks(np.stack([graph.rows[i], graph.columns[j]], 1))
    return evaluation.estimate(weights, "classes", weights[:, None, None], tasks)


def pair_table(unit: str, high: float | None = None) -> Table:
    """Pairs of classes with their similarity, which comes first, so that long names cannot hide it."""
    number = Column("value", unit or "similarity", digits=2, kind="bar", high=high, width=64)
    sides = (Column("a", "Class", kind="class", width=118), Column("b", "Other class", kind="class", width=118))
    return Table("Pairs of classes", number, *sides)


def describe(graph: ClassGraph) -> tuple[str, str]:
    """The most similar pair of classes, and the mean over all pairs with its 95% CI, as two sentences."""
    i, j, weights = graph.edges()
    if not len(weights):
        return "No two classes can be compared.", ""
    similarity = SIMILARITIES[graph.kind]
    average = mean(graph)
    digits = 2 if not average.ci95 < 0.005 else 3
    interval = f" ± {average.ci95:.{digits}f}" if np.isfinite(average.ci95) else ""
    unit = similarity.unit if similarity.unit.startswith("%") else f" {similarity.unit}".rstrip()
    more = f"{similarity.title}, mean over {len(weights):,} pairs: {average.mean:.{digits}f}{interval}{unit}."
    if weights[0] <= 0:
        return f"No two classes are similar: {similarity.title} is 0 for every pair.", more
    number = f"{weights[0]:.2f}{unit}{' of 1' if graph.unit in ('bits', '') else ''}"
    tied = int((weights == weights[0]).sum()) - 1
    also = f", tied with {tied:,} other pair{'s' * (tied > 1)}" if tied else ""
    first, second = short_names(graph.row_names)[i[0]], short_names(graph.column_names)[j[0]]
    return f"{similarity.superlative}: {first} and {second} ({number}){also}.", more
