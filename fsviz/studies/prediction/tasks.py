"""The cells of a question, and their tasks.

A cell is a part of a question with tasks of its own: a half of the classes, what is fixed, or all tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from fsviz import datasets
from fsviz.difficulty.measures import MEASURES, MeasureInputs
from fsviz.errors import BadInput, FsvizError, Missing
from fsviz.records import PAD, Dataset, Features, Tasks
from fsviz.settings import RawSettings, Setting
from fsviz.studies import chunk_data, confusion
from fsviz.studies import evaluate as evaluation_study
from fsviz.studies.prediction import spread
from fsviz.tasks import draw

TASK_SETTINGS: dict[str, Setting] = evaluation_study.TASK_SETTINGS
SHARE = Setting(
    "share",
    "Share of one class among the unlabelled",
    "The unlabelled images of the first class as a share of all; 0 for classes of equal size.",
    "float",
    0.0,
    0,
    0.9,
    advanced=True,
)
GRIDS: dict[str, tuple[float, ...]] = {  # values of a sweep by setting; those that do not fit a dataset are left out
    "n_shot": (1, 2, 3, 5, 7, 10, 15, 20),
    "n_way": (2, 3, 5, 7, 10, 15, 20),
    "n_query": (1, 2, 5, 10, 15, 20, 30, 50),
    "neighbours": (2, 5, 10, 15, 20, 30, 50, 100),
    SHARE.name: (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
HALVES = ("first half", "second half")
_CONFUSION_SECONDS = 12.0  # that all pairs of a split may take on one core


class Spec(draw.TaskSpec, total=False):
    """A checked spec. The number of unlabelled images is there once a spec with a share is fitted; a run adds its
    version and folder."""

    study: str
    version: int
    folder: str
    setting: str
    neighbours: int
    question: str
    hard_below: int
    found: int
    n_unlabelled: int
    share: float


@dataclass(frozen=True)
class Cell:
    """A part of a question: its name, "" if there is one only, and the settings of its tasks."""

    value: str
    spec: Spec
    n_tasks: int


def cells(spec: Spec) -> list[Cell]:
    """What a question of a fitted spec computes, in order."""
    question, n_tasks = spec["question"], int(spec["n_tasks"])
    if question == "hard":
        return [Cell(half, spec, n_tasks) for half in HALVES]
    if question == "spread":
        return [Cell(cause, spec, math.prod(spread.sets_of(cause, n_tasks))) for cause in spread.CAUSES]
    return [Cell("", spec, n_tasks)]


def draw_cell(spec: Spec, cell: Cell, dataset: Dataset, table: Features) -> Tasks:
    """The tasks of a cell, from images that have features."""
    if spec["question"] == "spread" and cell.value != spread.CAUSES[0]:
        return spread.draw_fixed(cell, dataset, table)
    asked = cast(Spec, dict(cell.spec))
    if spec["share"]:  # images for every share of the grid: tasks of several shares have the same first queries
        asked["n_query"] = max(max(_unbalanced(spec, share)) for share in (*GRIDS[SHARE.name], spec["share"]))
    if spec["question"] == "hard":
        dataset = halved(dataset, spec)
        asked["split"] = cell.value
    sampler = {
        name: cast(RawSettings, asked)[name]
        for name in (*TASK_SETTINGS, "backbone")
        if name in asked and name != "seed"
    }
    tasks = evaluation_study.sample_testbed(dataset, sampler, asked["seed"], {spec["backbone"]: table}).tasks
    tasks = with_confusion(draw.with_coarsity(tasks, dataset), dataset, spec)
    if spec["share"]:
        first, others = _unbalanced(spec, spec["share"])
        query = np.full_like(tasks.query, PAD)
        query[:, 0, :first], query[:, 1:, :others] = tasks.query[:, 0, :first], tasks.query[:, 1:, :others]
        tasks = replace(tasks, query=query)
    return tasks


def with_confusion(tasks: Tasks, dataset: Dataset, spec: Spec) -> Tasks:
    """The tasks with the confusion of their classes, where all pairs of the split take a few seconds."""
    try:
        class_ids, confusions = confusions_of(spec)
    except FsvizError:  # too large for now, images that are all the same, classes of one image
        return tasks
    given = MeasureInputs(positions=tasks.positions(class_ids), overlaps=confusions)
    return tasks.with_measure("class_overlap", MEASURES["class_overlap"](given))


def confusions_of(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and how much the backbone mixes up every pair of them (C, C), where that takes a few
    seconds; else refused."""
    stamp = chunk_data.stamp(spec["dataset"])
    return _confusions(spec["dataset"], spec["backbone"], spec["split"], stamp)


@lru_cache(maxsize=4)
def _confusions(dataset: str, backbone: str, split: str, stamp: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and how much the backbone mixes up every pair of them (C, C), in bits."""
    k = min(int(confusion.SETTINGS["k"].default), confusion.max_k(datasets.load(dataset), backbone, split))
    asked = confusion.SCHEMA.check({"dataset": dataset, "backbone": backbone, "split": split, "k": k})
    if confusion.seconds(asked) > _CONFUSION_SECONDS:
        raise Missing("The pairs of classes are too many to compare along the way; the page Confusion does as a run.")
    graph = confusion.class_graph(asked)
    return graph.rows, np.nan_to_num(graph.weights)


def halved(dataset: Dataset, spec: Spec) -> Dataset:
    """The dataset with the classes of the split in two halves, dealt by the seed."""
    class_ids = np.random.default_rng(spec["seed"]).permutation(dataset.split_class_ids(spec["split"]))
    middle = len(class_ids) // 2
    halves = {HALVES[0]: np.sort(class_ids[:middle]), HALVES[1]: np.sort(class_ids[middle:])}
    return replace(dataset, splits={**dataset.splits, **halves})


def _unbalanced(spec: Spec, share: float) -> tuple[int, int]:
    """Unlabelled images of the first class, and of each other one, when the first has this share of all of them."""
    first = max(1, round(share * spec["n_unlabelled"]))
    return first, max(1, round((spec["n_unlabelled"] - first) / (spec["n_way"] - 1)))


def sweeps(spec: Spec) -> dict[str, list[float]]:
    """The values of GRIDS that the images with features of a dataset can give."""
    dataset = datasets.load(spec["dataset"])
    _, n_classes, smallest = _class_sizes(spec, dataset, chunk_data.features_of(spec["dataset"], spec["backbone"]))
    n_seen = spec["n_shot"] + (spec["n_query"] if spec["setting"] != "supervised" else 0)
    limits = {
        "n_shot": smallest - spec["n_query"],
        "n_query": smallest - spec["n_shot"],
        "n_way": n_classes,
        "neighbours": spec["n_way"] * n_seen - 1,
        SHARE.name: SHARE.high,
    }
    return {name: [value for value in grid if value <= limits[name]] for name, grid in GRIDS.items()}


def _class_sizes(spec: Spec, dataset: Dataset, table: Features) -> tuple[np.ndarray, int, int]:
    """The classes of the split, how many they are, and the images with features of the smallest one."""
    class_ids = dataset.split_class_ids(spec["split"])
    counts = np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids]
    return class_ids, len(class_ids), int(counts.min())


def fitted(spec: Spec, dataset: Dataset, table: Features) -> Spec:
    """A checked spec with the number of unlabelled images that every share allows; an impossible one is refused."""
    spec = cast(Spec, dict(spec))
    question = spec["question"]
    draw.check_n_classes(dataset, spec["split"])
    class_ids, _, smallest = _class_sizes(spec, dataset, table)
    if spec["share"]:
        shares = (*GRIDS[SHARE.name], spec["share"])
        largest = max(*shares, (1 - min(shares)) / (spec["n_way"] - 1))  # share of any one class
        spec["n_unlabelled"] = min(spec["n_way"] * spec["n_query"], int((smallest - spec["n_shot"]) / largest))
        if spec["n_unlabelled"] < 2 * spec["n_way"]:
            raise BadInput(
                f"Imbalance needs more unlabelled images: the smallest class of split {spec['split']!r} has {smallest} "
                "images with features. Lower n_way or n_shot."
            )
    if question == "hard" and len(class_ids) < 2 * spec["n_way"]:
        raise BadInput(
            f"Hard or easy is learned on one half of the classes and tried on the other, so split {spec['split']!r} "
            f"needs at least {2 * spec['n_way']} classes. It has {len(class_ids)}. Lower n_way or pick another split."
        )
    return spec
