"""Which classes does the backbone mix up? A graph of classes by confusion, and by anything else that makes two alike.

    dataset -> features -> pairs of classes -> communities of their images -> confusion in bits -> class graph
    the same classes -> meaning, mean features, errors of a method -> class graph, compared with it edge by edge

One item is one pair of classes; with "base", a second split, pairs are base x split. After Bontonou et al. 2020,
section IV-B, figures 1 to 3.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features, sampling
from fsviz.difficulty import class_confusion
from fsviz.difficulty.class_confusion import PairCommunities
from fsviz.errors import BadInput, Missing
from fsviz.evaluation.intervals import Correlation, Estimate
from fsviz.features.backbones import title_of
from fsviz.records import Dataset, Features, Progress, Tasks
from fsviz.records.graphs import ClassGraph
from fsviz.settings import RawSettings, Schema, Setting, Settings, to_args
from fsviz.studies import chunk_data
from fsviz.studies import evaluate as evaluation_study
from fsviz.studies.study import Arrays, Part, Study, Work
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES

N_SHOT, N_QUERY, N_TASKS = 5, 10, 20  # of the two-way tasks that show the errors on a pair
_CHUNK_SECONDS = 1.0
_MOST_LAID_OUT = 400  # classes: the springs of more take fewer steps


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
            f"1 less the distance as a share of the largest in the split; the distance is {distance.what}",
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
BACKBONE = draw.BACKBONE.with_(help="Whose features are looked at: the first that the dataset has.")
SPLIT = draw.SPLIT.with_(help="The classes to compare: test where the dataset has it, else all.")
BASE = Setting(
    "base",
    "Base classes",
    "A second split, such as the one a backbone was trained on: every pair is then of one class of each.",
    "text",
    "",
)
SETTINGS: dict[str, Setting] = {**{s.name: s for s in (BACKBONE, SPLIT, BASE)}, **class_confusion.SETTINGS}
SCHEMA = Schema(SETTINGS, required=("dataset",), of="the confusion of classes")
N_EDGES = Setting(
    "edges",
    "Edges shown",
    "The most alike pairs of classes; all pairs count for communities, places and numbers.",
    "int",
    45,
    1,
    1_000_000,
)


class ConfusionSpec(TypedDict, total=False):
    """A checked spec; a settled one has the class_ids of its pairs too, a run adds its version and folder."""

    study: str
    version: int
    folder: str
    dataset: str
    backbone: str
    split: str
    base: str
    preprocess: str
    k: int
    n_runs: int
    seed: int
    backend: str
    rows: list[int]
    columns: list[int]
    chunk_pairs: int


class ConfusionRequest(ConfusionSpec, total=False):
    """What a page asks for: a spec, not checked yet, and by what two classes are alike."""

    likeness: str


class ConfusionSummary(TypedDict, total=False):
    """What `summary` says of a graph; that of a run names its features too."""

    pairs: int
    mean: float
    ci95: float | None
    most_confused: list[list[Any]]
    dataset: str
    backbone: str


# --- any likeness at once ----------------------------------------------------------------------------------------


def class_graph(spec: RawSettings, progress: Progress | None = None) -> ClassGraph:
    """The graph of a spec's classes by its "likeness" (confusion where it names none), computed here and now."""
    spec = dict(spec)
    kind = str(SIMILARITY.check(spec.pop("likeness", "confusion")))
    spec = cast(ConfusionSpec, SCHEMA.check(spec))
    dataset = datasets.load(spec["dataset"])
    if SIMILARITIES[kind].needs == "features":
        table = _features(dataset, spec["backbone"])
        spec["backbone"] = table.backbone
    rows, columns = _classes(dataset, spec)
    pairs = pairs_of(rows, columns)
    if kind == "confusion":
        how = {name: cast(RawSettings, spec)[name] for name in class_confusion.SETTINGS}
        values = class_confusion.class_confusion(table, pairs, **how, names=_names(dataset), progress=progress)
    elif kind == "error":
        values = 100 * _pair_errors(table, pairs, spec["seed"], progress)
    else:
        both = np.unique(np.concatenate([rows, columns]))
        cosine = kind == "cosine"
        matrix = _mean_cosines(table, both) if cosine else _closeness(dataset, both, kind, spec["backbone"])
        position = np.searchsorted(both, pairs)
        values = matrix[position[:, 0], position[:, 1]]
    return _graph(
        dataset, kind, spec["backbone"] if SIMILARITIES[kind].needs == "features" else "", rows, columns, values
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
    confused, asked = (np.pad(counts, (0, 1)) for counts in (seen.confused, seen.asked))
    a, b = position[pairs].T
    both = asked[a, b] + asked[b, a]
    values = np.where(both > 0, 100 * (confused[a, b] + confused[b, a]) / np.maximum(both, 1), np.nan)
    if np.isnan(values).all():
        raise Missing(
            f"No two classes of split {split!r} met in a task of this run. Choose a run on tasks of that split."
        )
    return _graph(dataset, "run", f"{entry.label} on {title_of(entry.backbone)}", class_ids, class_ids, values)


def pairs_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(P, 2) class_ids: every two of the same classes once, or every row with every column but itself."""
    if np.array_equal(rows, columns):
        first, second = np.triu_indices(len(rows), 1)
        return np.stack([rows[first], rows[second]], 1)
    pairs = np.stack(np.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _graph(
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


def _features(dataset: Dataset, backbone: str) -> Features:
    try:
        return features.load(dataset, backbone or features.required(dataset)[0])
    except Missing as error:
        if dataset.taxonomy is None:
            raise
        raise Missing(f"{error} Or compare classes by meaning (likeness 'jiang_conrath').") from error


def _names(dataset: Dataset) -> dict[int, str]:
    return dict(enumerate(dataset.classes["class_name"].astype(str)))


def _classes(dataset: Dataset, spec: ConfusionSpec) -> tuple[np.ndarray, np.ndarray]:
    """class_ids of the rows (base classes, where there are any) and columns of a spec's graph."""
    columns = dataset.split_class_ids(spec["split"] or draw.default_split(dataset))
    rows = dataset.split_class_ids(spec["base"]) if spec["base"] else columns
    if not spec["base"]:
        draw.check_n_classes(dataset, spec["split"] or draw.default_split(dataset), "A graph of classes")
    return rows, columns


def _mean_cosines(table: Features, class_ids: np.ndarray) -> np.ndarray:
    """(C, C) cosines of the classes' means of unit-length features."""
    class_confusion.check_classes(table, class_ids, 0, "plain")
    means = np.stack([evaluation.features_mean(table, np.array([c]), unit_length=True) for c in class_ids])
    return class_confusion.cosines(means).astype(float)


def _closeness(dataset: Dataset, class_ids: np.ndarray, distance: str, backbone: str) -> np.ndarray:
    """1 - D / max D (C, C) of the classes, by one of the DISTANCES over the smallest split that holds them all."""
    fitting = [s for s in (*dataset.splits, "all") if np.isin(class_ids, dataset.split_class_ids(s)).all()]
    split = min(fitting, key=lambda s: len(dataset.split_class_ids(s)))
    distances = draw.class_distances(dataset, split, distance, backbone=backbone or None)
    position = _positions(dataset.split_class_ids(split), class_ids)
    distances = distances[np.ix_(position, position)]
    return 1 - distances / (distances.max() or 1.0)


def _pair_errors(table: Features, pairs: np.ndarray, seed: int, progress: Progress | None = None) -> np.ndarray:
    """Share of wrong answers (P,) of ProtoNet on tasks of every pair; fewer shots where classes are small."""
    of_image = table.image_class_ids(int(table.image_ids.max()) + 1)
    smallest = int(np.bincount(table.class_ids, minlength=pairs.max() + 1)[np.unique(pairs)].min())
    if smallest < 2:
        raise BadInput("Errors on a pair need two images per class at least. Choose a split with larger classes.")
    n_shot, n_tasks = min(N_SHOT, smallest // 2), _tasks_per_pair(len(pairs))
    groups = None if table.groups is None else table.groups[: len(of_image)]
    tasks = Tasks(np.repeat(pairs, n_tasks, axis=0))
    tasks = sampling.assign_images(tasks, of_image, n_shot, min(N_QUERY, smallest - n_shot), seed, groups)
    right = evaluation.task_accuracy(evaluation.evaluate(table, tasks, "protonet", progress=progress))
    return 1 - right.reshape(len(pairs), n_tasks).mean(axis=1)


def _tasks_per_pair(n_pairs: int) -> int:
    return max(1, min(N_TASKS, 20_000 // n_pairs))


# --- the run -----------------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> ConfusionSpec:
    """The spec with every setting; backbone and split are those of the dataset if none is named."""
    values = SCHEMA.check(spec)
    dataset = datasets.load(values["dataset"])
    values["backbone"] = _features(dataset, values["backbone"]).backbone
    return cast(ConfusionSpec, values | {"split": values["split"] or draw.default_split(dataset)})


def prepare(spec: ConfusionSpec, folder: Path) -> ConfusionSpec:
    """Settles the classes of a spec."""
    dataset = datasets.load(spec["dataset"])
    table = _features(dataset, spec["backbone"])
    rows, columns = _classes(dataset, spec)
    class_confusion.check_classes(
        table, np.unique(np.concatenate([rows, columns])), spec["k"], spec["preprocess"], _names(dataset)
    )
    each = seconds(spec, table) / max(len(pairs_of(rows, columns)), 1)
    return spec | {
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "chunk_pairs": max(1, round(_CHUNK_SECONDS / each)),
    }


def seconds(spec: RawSettings, table: Features | None = None) -> float:
    """About how long the graph of a spec takes on one core: what decides between at once and a run."""
    spec = dict(spec)
    kind = spec.pop("likeness", "confusion")
    if kind not in ("confusion", "error"):
        return 0.5
    spec = cast(ConfusionSpec, SCHEMA.check(spec))
    dataset = datasets.load(spec["dataset"])
    rows, columns = _classes(dataset, spec)
    n_pairs = len(pairs_of(rows, columns))
    if kind == "error":
        return 6e-4 * n_pairs * _tasks_per_pair(n_pairs)
    table = table or _features(dataset, spec["backbone"])
    sizes = np.bincount(table.class_ids, minlength=dataset.n_classes).astype(float)
    images = sizes[rows].mean() + sizes[columns].mean()
    cosines = images**2 * (table.values.shape[1] * 1.2e-11 + 6e-9)
    slow = 100.0 if spec["backend"] == "python_louvain" else 1.0
    return float(n_pairs * (5e-4 + cosines + spec["n_runs"] * images * spec["k"] * 8e-8 * slow))


def max_k(dataset: Dataset, backbone: str, *splits: str) -> int:
    """The largest k that the classes of these splits allow, 0 where none does."""
    table = _features(dataset, backbone)
    used = np.unique(np.concatenate([dataset.split_class_ids(split) for split in splits]))
    return class_confusion.most_k(np.bincount(table.class_ids, minlength=dataset.n_classes)[used])


def fitting_k(spec: RawSettings) -> int:
    """The default of k, or the largest that the classes of a spec allow where that is less."""
    asked = SCHEMA.check({name: value for name, value in spec.items() if name != "likeness"})
    dataset = datasets.load(asked["dataset"])
    splits = [asked["split"] or draw.default_split(dataset), *([asked["base"]] if asked["base"] else [])]
    return max(1, min(int(SETTINGS["k"].default), max_k(dataset, asked["backbone"], *splits)))


def max_k_of(dataset: Dataset, backbone: str, *class_ids: int) -> int:
    """The same for single classes, 1 at least."""
    sizes = np.bincount(_features(dataset, backbone).class_ids, minlength=dataset.n_classes)
    return max(1, class_confusion.most_k(sizes[list(class_ids)]))


def work(spec: ConfusionSpec) -> Work:
    dataset = datasets.load(spec["dataset"])
    return Work(len(pairs_of(*_classes(dataset, spec))), "pairs of classes", seconds(spec))


def parts(spec: ConfusionSpec) -> list[Part]:
    return [Part("", len(_pairs(spec)), spec["chunk_pairs"], "pairs of classes")]


def n_bytes(spec: ConfusionSpec) -> float:
    n_pairs = len(_pairs(spec))
    return 16.0 * n_pairs + 400.0 * math.ceil(n_pairs / spec["chunk_pairs"])


def run_chunk(spec: ConfusionSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The confusion of one range of pairs."""
    table = chunk_data.features_of(spec["dataset"], spec["backbone"])
    how = {name: cast(RawSettings, spec)[name] for name in class_confusion.SETTINGS}
    return {"bits": class_confusion.class_confusion(table, _pairs(spec)[start:stop], **how)}


def collect(spec: ConfusionSpec, chunks: Sequence[Arrays]) -> ClassGraph:
    """The graph of the finished chunks of a run; pairs that are not done yet have no weight."""
    rows, columns = np.array(spec["rows"]), np.array(spec["columns"])
    values = np.full(len(_pairs(spec)), np.nan)
    for chunk in chunks:
        start, bits = int(chunk["start"]), chunk["bits"]
        values[start : start + len(bits)] = bits
    return _graph(datasets.load(spec["dataset"]), "confusion", spec["backbone"], rows, columns, values)


def finish(spec: ConfusionSpec, graph: ClassGraph) -> ConfusionSummary:
    """Saves nothing; says whose classes and features the graph is of."""
    return {"dataset": spec["dataset"], "backbone": spec["backbone"]}


def _pairs(spec: ConfusionSpec) -> np.ndarray:
    return pairs_of(np.array(spec["rows"]), np.array(spec["columns"]))


def command(spec: Settings, more: Sequence[str] = ()) -> str:
    """The command that gives the same graph, with more words such as `versus_words`."""
    known = {**SETTINGS, "likeness": SIMILARITY}
    said = {n: spec[n] for n, s in known.items() if spec.get(n, s.default) != s.default}
    return shlex.join(["fsviz", "confusion", spec["dataset"], *to_args(said, known), *more])


def describe_versus(first: ClassGraph, second: ClassGraph) -> list[str]:
    """What a command adds to compare the first graph with the second; a recorded run has no such words."""
    if SIMILARITIES[second.kind].needs == "run":
        return []
    kind = ["--versus", second.kind] if second.kind != first.kind else []
    return kind + (["--versus-backbone", second.source] if second.source not in ("", first.source) else [])


# --- what came out -----------------------------------------------------------------------------------------------


def summary(graph: ClassGraph, n: int = 10) -> ConfusionSummary:
    """{"pairs", "mean", "ci95" (over classes, None where unknown), "most_confused": [[a, b, weight], ...]}"""
    i, j, weights = graph.edges()
    found = mean(graph)
    half = found.ci95
    return {
        "pairs": len(weights),
        "mean": found.mean,
        "ci95": half if np.isfinite(half) else None,
        "most_confused": [
            [graph.row_names[a], graph.column_names[b], float(w)]
            for a, b, w in zip(i[:n], j[:n], weights[:n], strict=True)
        ],
    }


STUDY = Study(
    name="confusion",
    title="confusion of classes",
    question="Which classes does the backbone confuse?",
    settings=SCHEMA,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    finish=finish,
    work=work,
    n_bytes=n_bytes,
)


def mean(graph: ClassGraph) -> Estimate:
    """The mean over pairs with its error over classes: pairs that share a class are not independent."""
    i, j, weights = graph.edges()
    tasks = Tasks(np.stack([graph.rows[i], graph.columns[j]], 1))
    return evaluation.estimate(weights, "classes", weights[:, None, None], tasks)


def communities(graph: ClassGraph, seed: int = 0) -> np.ndarray:
    """Louvain communities (C,) of the classes of a graph that is not bipartite, the largest first."""
    return class_confusion.find_communities(graph.weights, seed=seed)


def community_order(graph: ClassGraph, found: np.ndarray) -> np.ndarray:
    """(C,) positions of the classes, community by community, and in each the one most like its fellows first."""
    same = found[:, None] == found[None, :]
    inside = np.nansum(np.where(same, graph.weights, 0.0), axis=1)
    return np.lexsort((-inside, found))


def layout(graph: ClassGraph, seed: int = 0) -> np.ndarray:
    """Places (C, 2) of the classes by springs: alike classes pull each other; each coordinate from -1 to 1.

    All pairs pull, so that places stay when another number of edges is shown. A bipartite graph stands in two columns,
    base classes first (R + C, 2), each novel class beside what it is like.
    """
    if graph.is_bipartite:
        return _two_columns(graph)
    n = len(graph.rows)
    weights = np.nan_to_num(graph.weights, nan=0.0)
    weights = weights / (weights.max() or 1.0)
    rest = np.sort(weights, axis=1)[:, -min(n, 4)]  # what is less than the third likeness of both ends pulls little
    weights = np.where(weights >= np.minimum(rest[:, None], rest[None, :]), weights, 0.05 * weights)
    xy = _springs(weights, 200 if n <= _MOST_LAID_OUT else 60, np.random.default_rng(seed))
    even = np.stack([_even(_ranks(along)) for along in xy.T], 1)  # half way to evenly spread: names need room
    xy = xy / (np.abs(xy).max(axis=0) + 1e-9) + even
    return xy / (np.abs(xy).max(axis=0) + 1e-9)


def _springs(weights: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Places (C, 2) after Fruchterman & Reingold 1991: neighbours pull by weight, all push, and every step is shorter.

    Like networkx's, but the forces of all pairs are one product of matrices: a tenth of the time.
    """
    n = len(weights)
    between = 2.5 / math.sqrt(n)  # distance at which a pull of weight one and the push are equal
    pulls = (weights / between).astype(np.float32)
    xy = rng.random((n, 2), dtype=np.float32)
    steps = 0.1 * float(np.ptp(xy, axis=0).max()) * (1 - np.arange(n_steps) / (n_steps + 1))
    for step in steps:
        lengths = (xy**2).sum(axis=1)
        squared = np.maximum(lengths[:, None] + lengths - 2 * xy @ xy.T, 1e-4)
        force = between**2 / squared - pulls * np.sqrt(squared)
        move = xy * force.sum(axis=1, keepdims=True) - force @ xy
        xy += step * move / np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 0.01)
    return xy - xy.mean(axis=0)


def _two_columns(graph: ClassGraph) -> np.ndarray:
    weights = np.nan_to_num(graph.weights, nan=0.0) ** 2
    left = np.arange(len(graph.rows), dtype=float)
    for _ in range(8):  # each class moves to the mean place of those it is like, then places are evened out
        right = _ranks(weights.T @ _even(left) / np.maximum(weights.sum(axis=0), 1e-12))
        left = _ranks(weights @ _even(right) / np.maximum(weights.sum(axis=1), 1e-12))
    x = np.repeat([-1.0, 1.0], [len(left), len(right)])
    return np.stack([x, np.concatenate([_even(left), _even(right)])], 1)


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def _even(ranks: np.ndarray) -> np.ndarray:
    return 2 * (ranks + 0.5) / len(ranks) - 1


@dataclass(frozen=True)
class TrainTestMatches:
    """What base classes give to novel ones, by the edges that are kept (section IV-B4); positions in rows and columns.

    matches      (base, novel) joined to each other alone: what a novel class looks like, one base class has taught
    split_base   base -> novel classes that share it: their images look alike to the backbone
    split_novel  novel -> base classes that it is spread over
    alone        novel classes without an edge
    """

    matches: list[tuple[int, int]]
    split_base: dict[int, list[int]]
    split_novel: dict[int, list[int]]
    alone: list[int]


def train_test_matches(graph: ClassGraph, n_edges: int) -> TrainTestMatches:
    """Perfect matches, split base classes and split novel classes among the heaviest edges of a bipartite graph."""
    i, j, weights = graph.edges(n_edges)
    i, j = i[weights > 0], j[weights > 0]
    base, novel = np.bincount(i, minlength=len(graph.rows)), np.bincount(j, minlength=len(graph.columns))
    return TrainTestMatches(
        [(int(a), int(b)) for a, b in zip(i, j, strict=True) if base[a] == novel[b] == 1],
        {int(a): j[i == a].tolist() for a in np.lexsort((np.arange(len(base)), -base)) if base[a] > 1},
        {int(b): i[j == b].tolist() for b in np.lexsort((np.arange(len(novel)), -novel)) if novel[b] > 1},
        np.flatnonzero(novel == 0).tolist(),
    )


# --- one pair, two graphs ----------------------------------------------------------------------------------------


def pair(spec: RawSettings, a: int, b: int) -> PairCommunities:
    """The images of two classes (class_ids) and the communities they fell into, as the spec's confusion sees them."""
    spec = SCHEMA.check({name: value for name, value in spec.items() if name != "likeness"})
    dataset = datasets.load(spec["dataset"])
    table = _features(dataset, spec["backbone"])
    how = {name: cast(RawSettings, spec)[name] for name in class_confusion.SETTINGS}
    return class_confusion.pair_communities(table, int(a), int(b), **how, names=_names(dataset))


@dataclass(frozen=True)
class SimilarityComparison:
    """Two graphs of the same classes, edge by edge.

    table  columns a, b (names), first, second (weights), gap: the share of pairs below it in the first graph less that
           in the second, from -1 to 1
    i, j   (E,) positions of the pairs
    """

    first: ClassGraph
    second: ClassGraph
    table: pd.DataFrame
    i: np.ndarray
    j: np.ndarray
    pearson: Correlation
    spearman: Correlation


def compare(first: ClassGraph, second: ClassGraph) -> SimilarityComparison:
    """The edges that both graphs know, and how their weights go together; intervals are over classes."""
    from scipy import stats

    if not (np.array_equal(first.rows, second.rows) and np.array_equal(first.columns, second.columns)):
        raise BadInput("Two graphs are compared edge by edge, so they must be of the same classes. Use one split.")
    known = ~(np.isnan(first.weights) | np.isnan(second.weights))
    i, j = np.nonzero(known if first.is_bipartite else np.triu(known, 1))
    x, y = first.weights[i, j], second.weights[i, j]
    ranks = [(stats.rankdata(v) - 0.5) / max(len(v), 1) for v in (x, y)]
    table = pd.DataFrame(
        {
            "a": np.array(first.row_names, dtype=object)[i],
            "b": np.array(first.column_names, dtype=object)[j],
            "first": x,
            "second": y,
            "gap": ranks[0] - ranks[1],
        }
    )
    pairs = np.stack([first.rows[i], first.columns[j]], 1)
    found = [evaluation.correlation(y, x, pairs, rank=rank) for rank in (False, True)]
    return SimilarityComparison(first, second, table, i, j, *found)


def outliers(compared: SimilarityComparison, n: int = 5, least: float = 0.5) -> tuple[list[int], list[int]]:
    """Edges (rows of the table) far larger in the first graph than in the second, and the other way round.

    least  share of all pairs by which their places differ at least
    """
    gap = compared.table["gap"].to_numpy()
    order = np.argsort(-gap, kind="stable")
    return (
        [int(e) for e in order[:n] if gap[e] >= least],
        [int(e) for e in order[::-1][:n] if gap[e] <= -least],
    )


def describe_edge(compared: SimilarityComparison, edge: int) -> tuple[str, str]:
    """How a pair is spoken of in both graphs: ("often confused", "far in meaning")."""
    row = compared.table.iloc[edge]
    said = []
    for graph, value, above in ((compared.first, row["first"], 1), (compared.second, row["second"], -1)):
        likeness = SIMILARITIES[graph.kind]
        large = above * row["gap"] > 0
        told = likeness.much if large else likeness.never if value <= 0 else likeness.little
        same = compared.first.kind == compared.second.kind
        said.append(f"{told} by {title_of(graph.source)}" if same and graph.source else told)
    return said[0], said[1]


def warm_up() -> None:
    """Compiles what finds communities, once per machine; later it is read from numba's cache."""
    class_confusion.find_communities(np.ones((3, 3)))
