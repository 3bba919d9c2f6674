"""Readings of an image map: where the names of classes go, and a task with its errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsviz.errors import FsvizError
from fsviz.features import maps
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset, Predictions, Tasks
from fsviz.records.image_map import MapLabel, MappedTask
from fsviz.studies import evaluate
from fsviz.text import short_names, shorten

METHOD = "protonet"  # classifies the queries of a task on the map
MAX_LABELS, MAX_LETTERS = 18, 22
_RADIUS = 0.07  # of the width of the map: images closer than this are together
_TOGETHER = 0.34  # share of a class's images that are together where its name is written
_LETTER, _LINE = 0.0135, 0.034  # size of a letter, as a share of the width of the map
_SAMPLE = 300  # images of a class that are compared with each other


def labels(
    xy: np.ndarray, codes: np.ndarray, names: Sequence[str], together: float = _TOGETHER, max_labels: int = MAX_LABELS
) -> list[MapLabel]:
    """Names of groups of images on a map (n, 2), each once where most of its images are; none overlap.

    codes     (n,) positions in `names`, PAD for none
    together  share of a group's images that are at least as close to its name
    """
    width = float(np.ptp(xy, axis=0).max()) or 1.0
    spots = []
    for code, name in enumerate(names):
        points = xy[codes == code].astype(float)
        points = points[np.linspace(0, len(points) - 1, min(len(points), _SAMPLE)).round().astype(int)]
        if not len(points):
            continue
        near = np.linalg.norm(points[:, None] - points[None], axis=2) < _RADIUS * width
        dense = int(near.sum(axis=1).argmax())
        share = float(near[dense].mean())
        if share >= together:
            x, y = np.median(points[near[dense]], axis=0).tolist()
            spots.append((int((codes == code).sum()) * share, MapLabel(name, x, y, share)))
    placed: list[MapLabel] = []
    for _, label in sorted(spots, key=lambda spot: -spot[0]):
        if len(placed) < max_labels and not any(_overlap(label, earlier, width) for earlier in placed):
            placed.append(label)
    return placed


def _overlap(a: MapLabel, b: MapLabel, width: float) -> bool:
    letters = (min(len(a.name), MAX_LETTERS) + min(len(b.name), MAX_LETTERS)) / 2 + 1
    return abs(a.x - b.x) < letters * _LETTER * width and abs(a.y - b.y) < _LINE * width


def class_labels(dataset: Dataset, feature_map: maps.FeatureMap) -> list[MapLabel]:
    """Names of the classes whose images are together on a map."""
    return labels(feature_map.xy, dataset.image_class_ids()[feature_map.image_ids], _short_names(dataset))


def highlight_labels(dataset: Dataset, feature_map: maps.FeatureMap, class_ids: Sequence[int]) -> list[MapLabel]:
    """Names of these classes, however far apart their images are."""
    of_image = dataset.image_class_ids()[feature_map.image_ids]
    codes = np.where(np.isin(of_image, class_ids), of_image, PAD)
    return labels(feature_map.xy, codes, _short_names(dataset), together=0.0)


def context_labels(dataset: Dataset, feature_map: maps.FeatureMap) -> list[MapLabel]:
    """Names of the contexts whose images are together on a map."""
    contexts = pd.Series(dataset.image_contexts()[feature_map.image_ids]).replace("", None)
    codes, names = pd.factorize(contexts)
    return labels(feature_map.xy, codes, [shorten(str(name)) for name in names])


def task_labels(xy: np.ndarray, task: MappedTask) -> list[MapLabel]:
    """Names of the classes of a task, each once above one of its support images."""
    width = float(np.ptp(xy, axis=0).max()) or 1.0
    placed: list[MapLabel] = []
    for way, name in enumerate(short_names(task.names, MAX_LETTERS)):
        support = xy[task.rows[(task.way == way) & task.is_support]].astype(float)
        if not len(support):
            continue
        order = np.argsort(np.linalg.norm(support - np.median(support, axis=0), axis=1), kind="stable")
        spots = [MapLabel(name, float(x), float(y) + _LINE * width) for x, y in support[order]]
        free = (spot for spot in spots if not any(_overlap(spot, label, width) for label in placed))
        placed.append(next(free, spots[0]))
    return placed


def _short_names(dataset: Dataset) -> list[str]:
    """Names of all classes that have room on a map."""
    return short_names(dataset.distinct_names(np.arange(dataset.n_classes)), MAX_LETTERS)


def map_task(dataset: Dataset, feature_map: maps.FeatureMap, tasks: Tasks) -> MappedTask:
    """The images of a single task on a map, and which queries ProtoNet misclassifies."""
    of_task = np.concatenate([tasks.support.ravel(), tasks.query.ravel()])
    row_of = {
        int(feature_map.image_ids[row]): int(row) for row in np.flatnonzero(np.isin(feature_map.image_ids, of_task))
    }
    ways = np.flatnonzero(tasks.class_ids[0] != PAD)
    names = tuple(dataset.distinct_names(tasks.class_ids[0][ways]))
    predictions = _predict(dataset, feature_map.backbone, tasks)
    images: list[tuple[int, int, bool, bool, str]] = []
    for number, way in enumerate(ways.tolist()):
        images += [(row_of[int(i)], number, True, True, "") for i in tasks.support[0, way] if int(i) in row_of]
        for place, image_id in enumerate(tasks.query[0, way].tolist()):
            if image_id in row_of:
                label = way if predictions is None else int(predictions.predicted[0, way, place])
                predicted = "" if predictions is None else names[ways.tolist().index(label)]
                images.append((row_of[image_id], number, False, label == way, predicted))
    rows, way_of, is_support, is_correct, predicted_names = zip(*images, strict=True) if images else ((),) * 5
    is_query = tasks.query[0] != PAD
    return MappedTask(
        names,
        np.array(rows, dtype=np.int64),
        np.array(way_of, dtype=np.int64),
        np.array(is_support, dtype=bool),
        np.array(is_correct, dtype=bool),
        tuple(predicted_names),
        None if predictions is None else int((predictions.rank[0][is_query] == 0).sum()),
        int(is_query.sum()),
    )


def _predict(dataset: Dataset, backbone: str, tasks: Tasks) -> Predictions | None:
    try:
        return evaluate.predict_tasks(dataset, backbone, METHOD, METHODS[METHOD].checked(), tasks)
    except FsvizError:
        return None


def task_sentence(task: MappedTask) -> str:
    """The number of queries of a task classified correctly, with the chance level."""
    if task.n_correct is None:
        return f"{task.n_queries:,} queries of {len(task.names)} classes; they cannot be classified."
    return (
        f"{METHODS[METHOD].title} classifies {task.n_correct:,} of {task.n_queries:,} queries correctly "
        f"({task.n_correct / task.n_queries:.0%}; chance level {1 / len(task.names):.0%})."
    )
