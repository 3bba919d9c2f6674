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
from fsviz.settings import N_QUERY, Setting, largest_images
from fsviz.studies import evaluate as evaluation_study
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES

N_TASKS, MIN_TASKS = 100, 10  # two-way tasks that measure the errors on a pair, and of very many classes


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
        "Largest overlap",
        "bits",
        "features",
        "large overlap",
        "little overlap",
        "no overlap",
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
        f"share of incorrect predictions of ProtoNet in tasks of these two classes, up to {N_TASKS} tasks of "
        f"{N_QUERY.default} queries per class.",
        "Most confused",
        "% incorrect",
        "features",
        "often predicted as each other",
        "rarely predicted as each other",
        "never predicted as each other",
    ),
    "run": ClassSimilarity(
        "Errors in a run",
        "share of queries of the two classes that a recorded run predicts as the other, in tasks that hold both.",
        "Most confused",
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
    class_confusion.check_classes(table, class_ids, "plain")
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


@dataclass(frozen=True)
class PairErrors:
    """Measured errors of ProtoNet on two-way tasks of every pair of a graph's classes.

    graph  share of incorrect predictions in percent; ci95 (R, C) half widths of its 95% CI over the tasks
    """

    graph: ClassGraph
    ci95: np.ndarray
    n_shot: int
    n_query: int
    n_tasks: int

    @property
    def cache_key(self) -> tuple[str, ...]:
        """Changes when the errors do."""
        return *self.graph.cache_key, str(self.n_shot), str(self.n_query), str(self.n_tasks)

    @property
    def brief(self) -> str:
        """Ways and shots."""
        return f"2-way {self.n_shot}-shot tasks"

    @property
    def setting(self) -> str:
        """Shots, method, tasks and queries, for captions."""
        queries = f"{self.n_query} {'query' if self.n_query == 1 else 'queries'} per class"
        return f"ProtoNet, {self.n_tasks:,} {self.brief} of each pair with {queries}, 95% CI over tasks"


def measure_errors(
    dataset: Dataset,
    table: Features,
    rows: np.ndarray,
    columns: np.ndarray,
    n_shot: int,
    seed: int,
    progress: Progress | None = None,
) -> PairErrors:
    """The errors of ProtoNet on every pair of these classes; fewer shots and queries if the smallest class is small."""
    class_ids = np.union1d(rows, columns)
    class_confusion.check_classes(table, class_ids, "plain", class_names(dataset))
    of_image = table.image_class_ids(int(table.image_ids.max()) + 1)
    smallest = int(np.bincount(table.class_ids, minlength=class_ids.max() + 1)[class_ids].min())
    largest = largest_images(n_shot, N_QUERY.default, lambda shots, queries: shots + queries <= smallest)
    if largest is None:
        raise BadInput("Errors on a pair need at least two images per class. Choose a split with larger classes.")
    n_tasks = tasks_per_pair(len(class_ids))
    groups = None if table.groups is None else table.groups[: len(of_image)]
    tasks = Tasks(np.tile(class_ids, (n_tasks, 1)))
    tasks = sampling.assign_images(tasks, of_image, *largest, seed, groups)
    errors, ci95 = (100 * matrix for matrix in evaluation.two_way_errors(table, tasks, progress))
    at = np.ix_(_positions(class_ids, rows), _positions(class_ids, columns))
    pairs = pairs_of(rows, columns)
    position = _positions(class_ids, pairs)
    values = errors[position[:, 0], position[:, 1]]
    graph = graph_of(dataset, "error", table.backbone, rows, columns, values)
    return PairErrors(graph, ci95[at], *largest, n_tasks)


def tasks_per_pair(n_classes: int) -> int:
    """Tasks of each pair: fewer of many classes, so that a page can wait for them."""
    return int(np.clip(N_TASKS * (200 / n_classes) ** 2, MIN_TASKS, N_TASKS))


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
