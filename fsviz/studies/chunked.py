"""What the studies that run as jobs share: which tasks a chunk holds, and the features, read once for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from fsviz import datasets, features
from fsviz.records import Features
from fsviz.settings import Unchecked
from fsviz.workspace import home


def chunk_at(cells: Iterable[tuple[int, int]], index: int) -> tuple[int, int, int]:
    """Cell and range of tasks (start, stop) of a chunk; a cell is its number of tasks and how many a chunk holds."""
    for which, (n_tasks, size) in enumerate(cells):
        n_chunks = math.ceil(n_tasks / size)
        if index < n_chunks:
            return which, index * size, min(n_tasks, (index + 1) * size)
        index -= n_chunks
    raise IndexError("no such chunk")


def stamp(dataset: str) -> str:
    """Changes when the workspace does, or what it holds of a dataset."""
    return f"{home()} {datasets.stamp(dataset)}"


def folder_of_images(spec: Unchecked) -> Path | None:
    """Where the images of a spec's dataset lie, None where they come with fsviz."""
    return datasets.load(str(spec["dataset"])).root


def features_of(dataset: str, backbone: str) -> Features:
    """The features, read once for all chunks of a run while the workspace does not change."""
    return _features_at(dataset, backbone, stamp(dataset))


@lru_cache(maxsize=4)
def _features_at(dataset: str, backbone: str, stamp: str) -> Features:
    return features.load(datasets.load(dataset), backbone)
