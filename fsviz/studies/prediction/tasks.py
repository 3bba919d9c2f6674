"""The cells of a question, and their tasks.

A cell has its own tasks: those of a half of the classes, those with fixed classes or shots, or all tasks.
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
    "Share of one class (unlabelled images)",
    "Share of unlabelled images in the first class; 0 for classes of equal size.",
    "float",
    0.0,
    0,
    0.9,
    advanced=True,
)
GRIDS: dict[str, tuple[float, ...]] = {  # values of a sweep by setting, as far as they fit
    "n_shot": (1, 2, 3, 5, 7, 10, 15, 20),
    "n_way": (2, 3, 5, 7, 10, 15, 20),
    "n_query": (1, 2, 5, 10, 15, 20, 30, 50),
    "neighbours": (2, 5, 10, 15, 20, 30, 50, 100),
    SHARE.name: (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
HALVES = ("first half", "second half")
_OVERLAP_SECONDS = 12.0  # limit for all pairs of a split, on one core


class PredictionSpec(draw.TaskSpec, total=False):
    """A checked spec. `fitted` adds n_unlabelled if there is a share; a run adds its version and folder."""

    study: str
    version: int
    folder: str
    setting: str
    neighbours: int
    question: str
    hard_below: int
    recall: int
    n_unlabelled: int
    share: float


@dataclass(frozen=True)
class PredictionCell:
    """A cell of a question: its name, "" if there is only one, and the settings of its tasks."""

    value: str
    spec: PredictionSpec
    n_tasks: int


def cells(spec: PredictionSpec) -> list[PredictionCell]:
    """Cells of a fitted spec, in order."""
    question, n_tasks = spec["question"], int(spec["n_tasks"])
    if question == "hard":
        return [PredictionCell(half, spec, n_tasks) for half in HALVES]
    if question == "spread":
        return [PredictionCell(cause, spec, math.prod(spread.sets_of(cause, n_tasks))) for cause in spread.CAUSES]
    return [PredictionCell("", spec, n_tasks)]


def draw_cell(spec: PredictionSpec, cell: PredictionCell, dataset: Dataset, table: Features) -> Tasks:
    """Sample the tasks of a cell from images with features."""
    if spec["question"] == "spread" and cell.value != spread.CAUSES[0]:
        return spread.draw_fixed(cell, dataset, table)
    settings = cast(PredictionSpec, dict(cell.spec))
    if spec["share"]:  # enough for every share of the grid: the first queries are the same for all shares
        settings["n_query"] = max(max(_unbalanced(spec, share)) for share in (*GRIDS[SHARE.name], spec["share"]))
    if spec["question"] == "hard":
        dataset = halved(dataset, spec)
        settings["split"] = cell.value
    sampler = {
        name: cast(RawSettings, settings)[name]
        for name in (*TASK_SETTINGS, "backbone")
        if name in settings and name != "seed"
    }
    tasks = evaluation_study.sample_testbed(dataset, sampler, settings["seed"], {spec["backbone"]: table}).tasks
    tasks = with_class_overlap(draw.with_coarsity(tasks, dataset), dataset, spec)
    if spec["share"]:
        first, rest = _unbalanced(spec, spec["share"])
        query = np.full_like(tasks.query, PAD)
        query[:, 0, :first], query[:, 1:, :rest] = (
            tasks.query[:, 0, :first],
            tasks.query[:, 1:, :rest],
        )
        tasks = replace(tasks, query=query)
    return tasks


def with_class_overlap(tasks: Tasks, dataset: Dataset, spec: PredictionSpec) -> Tasks:
    """Add the class overlap to tasks if all pairs of the split take only seconds."""
    try:
        class_ids, overlaps = class_overlaps(spec)
    except FsvizError:  # too many pairs, identical images, or classes of one image
        return tasks
    inputs = MeasureInputs(positions=tasks.positions(class_ids), overlaps=overlaps)
    return tasks.with_measure("class_overlap", MEASURES["class_overlap"](inputs))


def class_overlaps(spec: PredictionSpec) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and the overlap of every pair (C, C) in bits; refuse what takes more than seconds."""
    stamp = chunk_data.stamp(spec["dataset"])
    return _class_overlaps(spec["dataset"], spec["backbone"], spec["split"], stamp)


@lru_cache(maxsize=4)
def _class_overlaps(dataset: str, backbone: str, split: str, stamp: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and the overlap of every pair (C, C) in bits."""
    request = confusion.SCHEMA.check({"dataset": dataset, "backbone": backbone, "split": split})
    if confusion.seconds(request) > _OVERLAP_SECONDS:
        raise Missing("Too many class pairs to compare here. Run them on the page Confusion.")
    graph = confusion.class_graph(request)
    return graph.rows, np.nan_to_num(graph.weights)


def halved(dataset: Dataset, spec: PredictionSpec) -> Dataset:
    """The dataset with the classes of the split in two random halves, by the seed."""
    class_ids = np.random.default_rng(spec["seed"]).permutation(dataset.split_class_ids(spec["split"]))
    middle = len(class_ids) // 2
    halves = {HALVES[0]: np.sort(class_ids[:middle]), HALVES[1]: np.sort(class_ids[middle:])}
    return replace(dataset, splits={**dataset.splits, **halves})


def _unbalanced(spec: PredictionSpec, share: float) -> tuple[int, int]:
    """Unlabelled images of the first class and of every other class, if the first has this share."""
    first = max(1, round(share * spec["n_unlabelled"]))
    return first, max(1, round((spec["n_unlabelled"] - first) / (spec["n_way"] - 1)))


def sweeps(spec: PredictionSpec) -> dict[str, list[float]]:
    """The values of GRIDS that fit the images with features."""
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


def _class_sizes(spec: PredictionSpec, dataset: Dataset, table: Features) -> tuple[np.ndarray, int, int]:
    """Classes of the split, their number, and the images with features of the smallest one."""
    class_ids = dataset.split_class_ids(spec["split"])
    counts = np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids]
    return class_ids, len(class_ids), int(counts.min())


def fitted(spec: PredictionSpec, dataset: Dataset, table: Features) -> PredictionSpec:
    """Add the number of unlabelled images that every share allows; refuse an impossible spec."""
    spec = cast(PredictionSpec, dict(spec))
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
            "The threshold is fitted on half of the classes and tested on the other, so split "
            f"{spec['split']!r} needs at least {2 * spec['n_way']} classes. It has {len(class_ids)}. Lower n_way or "
            "pick another split."
        )
    return spec
