"""Labels and a task on a map of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MapLabel:
    """A name on a map and the share of its images that are close to it."""

    name: str
    x: float
    y: float
    share: float = 1.0


@dataclass(frozen=True)
class MappedTask:
    """A task on a map, with m of its images.

    names       (W,) of its classes
    rows        (m,) rows of the map
    way         (m,) position of the class of an image in `names`
    is_support  (m,) whether it is a support image, not a query
    is_correct  (m,) whether a query is classified correctly; True for support images
    predicted   (m,) the predicted class of a query, "" for support images and unclassified queries
    n_correct   queries that are classified correctly; None if they cannot be classified
    n_queries   queries of the task, also those that are not on the map
    """

    names: tuple[str, ...]
    rows: np.ndarray
    way: np.ndarray
    is_support: np.ndarray
    is_correct: np.ndarray
    predicted: tuple[str, ...]
    n_correct: int | None
    n_queries: int
