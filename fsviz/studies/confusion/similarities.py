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

N_SHOT, N_QUERY, N_TASKS = 5, 10, 20  # of the two-way tasks that show the errors on a pair


@dataclass(frozen=True)
class ClassSimilarity:
    """A way in which two classes are alike.

    needs                what it is made of
    much, little, never  how a pair is spoken of whose number is large, small or zero
    """

    title: str
    what: str
    unit: str  # "" for numbers without one
    needs: Literal["features", "taxonomy", "run"]
    much: str
    little: str
    never: str


SIMILARITIES: dict[str, ClassSimilarity] = {
    "confusion": ClassSimilarity(
        "Confusion",
        "entropy of the labels in communities of the two classes' images, in bits: 0 where every community is of one "
        "class, 1 where communities know nothing of the classes.",
        "bits",
        "features",
        "often confused",
        "rarely confused",
        "never confused",
    ),
    "cosine": ClassSimilarity(
        "Cosine of mean features",
        "the cosine of the two classes' mean features: alike on average, however wide the classes are.",
        "",
        "features",
        "alike on average",
        "unlike on average",
        "unlike on average",
    ),
    "error": ClassSimilarity(
        "Errors on the pair",
        f"the share of wrong answers of ProtoNet in tasks of these two classes alone, up to {N_TASKS} of them with "
        f"{N_SHOT} support images per class.",
        "% wrong",
        "features",
        "often mistaken for each other",
        "rarely mistaken for each other",
        "never mistaken for each other",
    ),
    "run": ClassSimilarity(
        "Mistakes in a run",
        "the share of queries of the two classes that a recorded run took for the other, in tasks that hold both.",
        "% taken for the other",
        "run",
        "often taken for each other",
        "rarely taken for each other",
        "never taken for each other",
    ),
    **{
        name: ClassSimilarity(
            f"Closeness ({distance.title})",
            f"1 less the distance as a share of the largest in the split; the distance is {distance.description}",
            "",
            distance.needs,
            "close in meaning" if distance.needs == "taxonomy" else "close in feature space",
            "far in meaning" if distance.needs == "taxonomy" else "far in feature space",
            "far in meaning" if distance.needs == "taxonomy" else "far in feature space",
        )
        for name, distance in DISTANCES.items()
    },
}
SIMILARITY = Setting(
    "likeness",
    "Classes are alike by",
    "What the edges of the graph say of two classes.",
    "choice",
    "confusion",
    choices={name: likeness.title for name, likeness in SIMILARITIES.items() if likeness.needs != "run"},
)


def possible_similarities(dataset: Dataset) -> list[str]:
    """The likenesses that need no run and that this dataset can give."""
    there = {"features": bool(features.available(dataset)), "taxonomy": dataset.taxonomy is not None}
    return [name for name in SIMILARITY.choices if there[SIMILARITIES[name].needs]]


def graph_of_predictions(
    spec: evaluation_study.ResolvedSpec, chunks: Sequence[Mapping[str, np.ndarray]], which: int, split: str
) -> ClassGraph:
    """The graph of a split's classes by how often entry number `which` of an evaluation took one for the other.

    spec, chunks  of the run, the spec with its "folder"
    """
    dataset = datasets.load(spec["dataset"])
    entry = evaluation_study.entries(spec)[which]
    answer = evaluation_study.predictions(spec, chunks, which)
    tasks = evaluation_study.entry_tasks(spec, entry, stop=len(answer))
    seen = evaluation.pair_confusion(answer, tasks)
    class_ids = dataset.split_class_ids(split)
    pairs = pairs_of(class_ids, class_ids)
    position = np.full(dataset.n_classes, len(seen.class_ids))
    position[seen.class_ids] = np.arange(len(seen.class_ids))
    confused, asked = (np.pad(counts, (0, 1)) for counts in (seen.confused, seen.n_queries))
    a, b = position[pairs].T
    both = asked[a, b] + asked[b, a]
    values = np.where(both > 0, 100 * (confused[a, b] + confused[b, a]) / np.maximum(both, 1), np.nan)
    if np.isnan(values).all():
        raise Missing(
            f"No two classes of split {split!r} met in a task of this run. Choose a run on tasks of that split."
        )
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
    likeness = SIMILARITIES[kind]
    names = (tuple(dataset.distinct_names(rows)), tuple(dataset.distinct_names(columns)))
    return ClassGraph(kind, likeness.title, likeness.unit, source, rows, columns, *names, weights)


def _positions(class_ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    order = np.argsort(class_ids)
    return order[np.searchsorted(class_ids, wanted, sorter=order)]


def features_of(dataset: Dataset, backbone: str) -> Features:
    try:
        return features.load(dataset, backbone or features.required(dataset)[0])
    except Missing as error:
        if dataset.taxonomy is None:
            raise
        raise Missing(f"{error} Or compare classes by meaning (likeness 'jiang_conrath').") from error


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
    """Share of wrong answers (P,) of ProtoNet on tasks of every pair; fewer shots where classes are small."""
    of_image = table.image_class_ids(int(table.image_ids.max()) + 1)
    smallest = int(np.bincount(table.class_ids, minlength=pairs.max() + 1)[np.unique(pairs)].min())
    if smallest < 2:
        raise BadInput("Errors on a pair need two images per class at least. Choose a split with larger classes.")
    n_shot, n_tasks = min(N_SHOT, smallest // 2), tasks_per_pair(len(pairs))
    groups = None if table.groups is None else table.groups[: len(of_image)]
    tasks = Tasks(np.repeat(pairs, n_tasks, axis=0))
    tasks = sampling.assign_images(tasks, of_image, n_shot, min(N_QUERY, smallest - n_shot), seed, groups)
    right = evaluation.task_accuracy(evaluation.evaluate(table, tasks, "protonet", progress=progress))
    return 1 - right.reshape(len(pairs), n_tasks).mean(axis=1)


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
    """The mean over pairs with its error over classes: pairs that share a class are not independent."""
    i, j, weights = graph.edges()
    tasks = Tasks(np.stack([graph.rows[i], graph.columns[j]], 1))
    return evaluation.estimate(weights, "classes", weights[:, None, None], tasks)


def pair_table(unit: str, high: float | None = None) -> Table:
    """Pairs of classes with the number of their edge; the number comes first, so that long names cannot hide it."""
    number = Column("value", unit or "similarity", digits=2, kind="bar", high=high, width=75)
    return Table("Pairs of classes", number, Column("a", "Class"), Column("b", "Other class"))
