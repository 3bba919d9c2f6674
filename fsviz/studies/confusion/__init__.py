"""Study confusion: a graph of classes by class overlap, or by another similarity.

    dataset -> features -> pairs of classes -> communities of their images -> overlap in bits -> class graph
    the same classes -> semantic distance, mean features, errors of a method -> class graph, compared edge by edge
    the same classes -> two-way tasks of every pair -> errors of ProtoNet, next to the overlap

Overlap is not error, so errors are measured too. One item is one pair of classes; with "base", a split of training
classes, pairs are base x split. After Bontonou et al. 2020, section IV-B, figures 1 to 3.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets
from fsviz.difficulty import class_confusion
from fsviz.difficulty.class_confusion import PairCommunities
from fsviz.errors import BadInput
from fsviz.records import Dataset, Features, Progress
from fsviz.records.graphs import ClassGraph
from fsviz.settings import N_SHOT, RawSettings, Schema, Setting, Settings, to_args
from fsviz.studies import chunk_data
from fsviz.studies.confusion.class_layout import communities, community_order, layout
from fsviz.studies.confusion.comparison import (
    SimilarityComparison,
    TrainTestMatches,
    compare,
    describe_comparison,
    describe_correlations,
    describe_edge,
    outliers,
    train_test_matches,
)
from fsviz.studies.confusion.ranked_pairs import PAIR_ORDER, describe, pair_table, ranked_pairs
from fsviz.studies.confusion.similarities import (
    SIMILARITIES,
    SIMILARITY,
    PairErrors,
    class_names,
    closeness,
    describe_versus,
    features_of,
    graph_of,
    graph_of_predictions,
    headline,
    mean,
    mean_cosines,
    measure_errors,
    pairs_of,
    possible_similarities,
    tasks_per_pair,
)
from fsviz.studies.study import Arrays, Part, Study, Work
from fsviz.tasks import draw

__all__ = [
    "BACKBONE",
    "BASE",
    "N_EDGES",
    "N_SHOT",
    "PAIR_ORDER",
    "SCHEMA",
    "SETTINGS",
    "SIMILARITIES",
    "SIMILARITY",
    "STUDY",
    "ConfusionRequest",
    "ConfusionSummary",
    "PairCommunities",
    "PairErrors",
    "SimilarityComparison",
    "TrainTestMatches",
    "class_graph",
    "collect",
    "command",
    "communities",
    "community_order",
    "compare",
    "describe",
    "describe_comparison",
    "describe_correlations",
    "describe_edge",
    "describe_versus",
    "edges_per_image",
    "graph_of_predictions",
    "layout",
    "mean",
    "n_bytes",
    "outliers",
    "pair",
    "pair_errors",
    "pair_table",
    "pairs_of",
    "possible_similarities",
    "ranked_pairs",
    "run_spec",
    "seconds",
    "summary",
    "train_test_matches",
    "warm_up",
]

_CHUNK_SECONDS = 1.0
BACKBONE = draw.BACKBONE.with_(help="Backbone to use (default: first available).")
SPLIT = draw.SPLIT.with_(help="The classes to compare (default: test, or all without a test split).")
BASE = Setting(
    "base",
    "Training classes",
    "The split of the training classes, without those of the first split: pairs then hold one class of each.",
    "text",
    "",
)
SETTINGS: dict[str, Setting] = {**{s.name: s for s in (BACKBONE, SPLIT, BASE)}, **class_confusion.SETTINGS}
SCHEMA = Schema(SETTINGS, required=("dataset",), of="class confusion")
N_EDGES = Setting(
    "edges",
    "Edges",
    "Number of most similar pairs to draw. Clusters, layout and numbers use all pairs.",
    "int",
    45,
    1,
    1_000_000,
)


class ConfusionSpec(TypedDict, total=False):
    """A checked spec; a prepared one adds the class_ids of its pairs, a run its version and folder."""

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
    """The request of a page: an unchecked spec, the similarity of classes, and the shots of measured errors."""

    likeness: str
    n_shot: int


class ConfusionSummary(TypedDict, total=False):
    """The summary of a graph; that of a run adds its dataset and backbone."""

    pairs: int
    mean: float
    ci95: float | None
    most_similar: list[list[Any]]
    dataset: str
    backbone: str


def class_graph(spec: RawSettings, progress: Progress | None = None) -> ClassGraph:
    """The graph of a spec's classes by its "likeness" (default: confusion), computed in this process."""
    kind = str(SIMILARITY.check(spec.get("likeness", "confusion")))
    if kind == "error":
        return pair_errors(spec, progress).graph
    spec = cast(ConfusionSpec, SCHEMA.check(run_spec(spec)))
    dataset = datasets.load(spec["dataset"])
    if SIMILARITIES[kind].needs == "features":
        table = features_of(dataset, spec["backbone"])
        spec["backbone"] = table.backbone
    rows, columns = _classes(dataset, spec)
    pairs = pairs_of(rows, columns)
    if kind == "confusion":
        how = {name: cast(RawSettings, spec)[name] for name in class_confusion.SETTINGS}
        values = class_confusion.class_confusion(table, pairs, **how, names=class_names(dataset), progress=progress)
    else:
        both = np.unique(np.concatenate([rows, columns]))
        cosine = kind == "cosine"
        matrix = mean_cosines(table, both) if cosine else closeness(dataset, both, kind, spec["backbone"])
        position = np.searchsorted(both, pairs)
        values = matrix[position[:, 0], position[:, 1]]
    return graph_of(
        dataset, kind, spec["backbone"] if SIMILARITIES[kind].needs == "features" else "", rows, columns, values
    )


def run_spec(request: RawSettings) -> RawSettings:
    """The part of a request that a run of the study takes."""
    return {name: value for name, value in request.items() if name not in (SIMILARITY.name, N_SHOT.name)}


def pair_errors(request: RawSettings, progress: Progress | None = None) -> PairErrors:
    """Measured errors of ProtoNet on every pair of a request's classes, with its shots and seed."""
    spec = cast(ConfusionSpec, SCHEMA.check(run_spec(request)))
    dataset = datasets.load(spec["dataset"])
    n_shot = int(cast(int, N_SHOT.check(request.get(N_SHOT.name, N_SHOT.default))))
    table = features_of(dataset, spec["backbone"])
    return measure_errors(dataset, table, *_classes(dataset, spec), n_shot, spec["seed"], progress)


def edges_per_image(spec: RawSettings) -> tuple[float, float]:
    """The fewest and the most edges per image in the graphs of a spec's pairs: k, or a fifth of the pair's images."""
    spec = SCHEMA.check(run_spec(spec))
    dataset = datasets.load(spec["dataset"])
    sizes = np.bincount(features_of(dataset, spec["backbone"]).class_ids, minlength=dataset.n_classes)
    ordered = np.sort(sizes[np.unique(np.concatenate(_classes(dataset, cast(ConfusionSpec, spec))))])
    ends = (int(ordered[:2].sum()), int(ordered[-2:].sum()))
    low, high = (class_confusion.edges_per_image(n, spec["k"], spec["preprocess"]) for n in ends)
    return low, high


def _classes(dataset: Dataset, spec: ConfusionSpec) -> tuple[np.ndarray, np.ndarray]:
    """class_ids of the rows (training classes outside the split, if there are any) and columns of a spec's graph."""
    split = spec["split"] or draw.default_split(dataset)
    columns = dataset.split_class_ids(split)
    if not spec["base"]:
        draw.check_n_classes(dataset, split, "A graph of classes")
        return columns, columns
    rows = np.setdiff1d(dataset.split_class_ids(spec["base"]), columns)
    if not len(rows):
        raise BadInput(
            f"Training classes must not be in split {split!r}. All classes of {spec['base']!r} are. Choose another "
            "split."
        )
    return rows, columns


def check(spec: RawSettings) -> ConfusionSpec:
    """The spec with every setting; backbone and split default to those of the dataset."""
    values = SCHEMA.check(spec)
    dataset = datasets.load(values["dataset"])
    values["backbone"] = features_of(dataset, values["backbone"]).backbone
    return cast(ConfusionSpec, values | {"split": values["split"] or draw.default_split(dataset)})


def prepare(spec: ConfusionSpec, folder: Path) -> ConfusionSpec:
    """Adds the classes of a spec and the size of its chunks."""
    dataset = datasets.load(spec["dataset"])
    table = features_of(dataset, spec["backbone"])
    rows, columns = _classes(dataset, spec)
    class_confusion.check_classes(
        table, np.unique(np.concatenate([rows, columns])), spec["preprocess"], class_names(dataset)
    )
    each = seconds(spec, table) / max(len(pairs_of(rows, columns)), 1)
    return spec | {
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "chunk_pairs": max(1, round(_CHUNK_SECONDS / each)),
    }


def seconds(spec: RawSettings, table: Features | None = None) -> float:
    """About how long the graph of a spec takes on one core, in seconds."""
    kind = spec.get("likeness", "confusion")
    if kind not in ("confusion", "error"):
        return 0.5
    spec = cast(ConfusionSpec, SCHEMA.check(run_spec(spec)))
    dataset = datasets.load(spec["dataset"])
    rows, columns = _classes(dataset, spec)
    n_pairs = len(pairs_of(rows, columns))
    if kind == "error":
        n_classes = len(np.union1d(rows, columns))
        return tasks_per_pair(n_classes) * (2e-4 * n_classes + 1e-6 * n_classes**2)
    table = table or features_of(dataset, spec["backbone"])
    sizes = np.bincount(table.class_ids, minlength=dataset.n_classes).astype(float)
    images = sizes[rows].mean() + sizes[columns].mean()
    cosines = images**2 * (table.values.shape[1] * 1.2e-11 + 6e-9)
    slow = 100.0 if spec["backend"] == "python_louvain" else 1.0
    return float(n_pairs * (5e-4 + cosines + spec["n_runs"] * images * spec["k"] * 8e-8 * slow))


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
    """The graph of the finished chunks of a run; unfinished pairs have no weight."""
    rows, columns = np.array(spec["rows"]), np.array(spec["columns"])
    values = np.full(len(_pairs(spec)), np.nan)
    for chunk in chunks:
        start, bits = int(chunk["start"]), chunk["bits"]
        values[start : start + len(bits)] = bits
    return graph_of(datasets.load(spec["dataset"]), "confusion", spec["backbone"], rows, columns, values)


def finish(spec: ConfusionSpec, graph: ClassGraph) -> ConfusionSummary:
    """The dataset and the backbone of the graph; nothing is saved."""
    return {"dataset": spec["dataset"], "backbone": spec["backbone"]}


def _pairs(spec: ConfusionSpec) -> np.ndarray:
    return pairs_of(np.array(spec["rows"]), np.array(spec["columns"]))


def command(spec: Settings, more: Sequence[str] = ()) -> str:
    """The command that gives the same graph, with more arguments such as those of `describe_versus`."""
    settings = {**SETTINGS, "likeness": SIMILARITY, "n_shot": N_SHOT}
    changed = {n: spec[n] for n, s in settings.items() if spec.get(n, s.default) != s.default}
    return shlex.join(["fsviz", "confusion", spec["dataset"], *to_args(changed, settings), *more])


def summary(graph: ClassGraph, n: int = 10) -> ConfusionSummary:
    """Mean over pairs with its 95% CI over classes (None if undefined), and the n most similar pairs with weights."""
    i, j, weights = graph.edges()
    estimate = mean(graph)
    half = estimate.ci95
    return {
        "pairs": len(weights),
        "mean": estimate.mean,
        "ci95": half if np.isfinite(half) else None,
        "most_similar": [
            [graph.row_names[a], graph.column_names[b], float(w)]
            for a, b, w in zip(i[:n], j[:n], weights[:n], strict=True)
        ],
    }


STUDY = Study(
    name="confusion",
    title="class overlap",
    question="Which classes overlap in feature space?",
    settings=SCHEMA,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    headline=headline,
    summarise=summary,
    finish=finish,
    work=work,
    n_bytes=n_bytes,
    version=2,
)


def pair(spec: RawSettings, a: int, b: int) -> PairCommunities:
    """The images of two classes (class_ids) and their communities, with the settings of a spec."""
    spec = SCHEMA.check(run_spec(spec))
    dataset = datasets.load(spec["dataset"])
    table = features_of(dataset, spec["backbone"])
    how = {name: cast(RawSettings, spec)[name] for name in class_confusion.SETTINGS}
    return class_confusion.pair_communities(table, int(a), int(b), **how, names=class_names(dataset))


def warm_up() -> None:
    """Compiles community detection, once per machine; later it is read from numba's cache."""
    class_confusion.find_communities(np.ones((3, 3)))
