"""What lies near an image and near its class: neighbours in feature space, and the class's place in the taxonomy."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from fsviz import features
from fsviz.errors import Missing
from fsviz.records import Dataset, Features

_ROWS = 65_536  # feature rows compared at a time, so that a large memory-mapped store never has to fit


def nearest_images(stored: Features, image_ids: np.ndarray, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k images nearest to each of Q images by the cosine of their features, the image itself left out.

    Returns image_ids (Q, k) and cosines (Q, k), nearest first; fewer than k columns when there are fewer images.
    """
    image_ids = np.atleast_1d(np.asarray(image_ids, dtype=np.int64))
    rows = stored.rows_of(image_ids)
    if (rows < 0).any():
        missing = int(image_ids[rows < 0][0])
        raise Missing(
            f"Image {missing} has no features under {stored.backbone}: it was added later or could not be opened. "
            f"Run 'python -m fsviz extract {stored.dataset} --backbone {stored.backbone}' again."
        )
    query = _unit(stored.values[rows])
    n = len(stored.values)
    k = min(k, n - 1)
    best_rows = np.empty((len(rows), 0), dtype=np.int64)
    best = np.empty((len(rows), 0), dtype=np.float32)
    for start in range(0, n, _ROWS):
        block = _unit(stored.values[start : start + _ROWS])
        cosines = query @ block.T
        own = (rows >= start) & (rows < start + len(block))
        cosines[np.flatnonzero(own), rows[own] - start] = -np.inf
        best = np.concatenate([best, cosines], axis=1)
        best_rows = np.concatenate(
            [best_rows, np.broadcast_to(np.arange(start, start + len(block)), cosines.shape)], axis=1
        )
        keep = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(best, keep, axis=1)
        best_rows = np.take_along_axis(best_rows, keep, axis=1)
    return stored.image_ids[best_rows], best


def nearest_images_of(dataset: Dataset, backbone: str, image_id: int, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest images (k,) of one image under a backbone's stored features, and their cosines (k,)."""
    near, cosines = nearest_images(features.load(dataset, backbone), np.array([image_id]), k)
    return near[0], cosines[0]


def backbones(dataset: Dataset) -> list[str]:
    """The backbones that have features of a dataset."""
    return features.available(dataset)


def _unit(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Place:
    """Where a class sits in its taxonomy.

    path      readable names from the root down to the class, along a shortest path
    shared    the lowest node on it that other classes of the dataset are below, too ("" when there is none)
    siblings  class_ids of those other classes
    """

    path: tuple[str, ...]
    shared: str
    siblings: tuple[int, ...]


def place_in_taxonomy(dataset: Dataset, class_id: int) -> Place | None:
    """The place of a class, or None when the dataset or the class has no taxonomy."""
    if dataset.taxonomy is None or not dataset.classes["node"].iat[class_id]:
        return None
    parents: dict[str, list[str]] = {}
    for child, parent in zip(dataset.taxonomy["child"], dataset.taxonomy["parent"], strict=True):
        parents.setdefault(child, []).append(parent)
    node = str(dataset.classes["node"].iat[class_id])
    path = _shortest_way_up(node, parents)
    level = {ancestor: i for i, ancestor in enumerate(path)}  # 0 is the class itself
    meeting: dict[int, list[int]] = {}
    for other, other_node in enumerate(dataset.classes["node"].astype(str)):
        if other != class_id and other_node:
            met = [level[a] for a in _ancestors(other_node, parents) if a in level]
            if met:
                meeting.setdefault(min(met), []).append(other)
    lowest = min(meeting) if meeting else None
    names = dataset.node_names
    return Place(
        path=tuple(names.get(n, n) for n in reversed(path)),
        shared="" if lowest is None else names.get(path[lowest], path[lowest]),
        siblings=() if lowest is None else tuple(meeting[lowest]),
    )


def _shortest_way_up(node: str, parents: dict[str, list[str]]) -> list[str]:
    """Breadth-first from the node to the nearest root; the first parent listed wins a tie."""
    before: dict[str, str] = {}
    waiting = deque([node])
    seen = {node}
    while waiting:
        here = waiting.popleft()
        if not parents.get(here):
            path = [here]
            while path[-1] != node:
                path.append(before[path[-1]])
            return path[::-1]
        for parent in parents[here]:
            if parent not in seen:
                seen.add(parent)
                before[parent] = here
                waiting.append(parent)
    return [node]  # a cycle has no root: only the class itself can be told


def _ancestors(node: str, parents: dict[str, list[str]]) -> set[str]:
    found = {node}
    waiting = [node]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found
