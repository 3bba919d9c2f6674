"""The images nearest to an image in feature space."""

from __future__ import annotations

import numpy as np

from fsviz.errors import Missing
from fsviz.features.store import load
from fsviz.records import Dataset, Features

_ROWS = 16_384  # feature rows compared at a time, so that a large memory-mapped store never has to fit


def nearest_images(stored: Features, image_ids: np.ndarray, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k images nearest to each of Q images by the cosine of their features, the image itself left out.

    Where the features know groups (copies of a picture, frames of a video), the images of its group are excluded too.
    Returns image_ids (Q, k) and cosines (Q, k), nearest first; fewer than k columns when there are fewer images.
    scikit-learn's NearestNeighbors would do for small stores, but scales a copy of all features in memory to length
    one, refuses a store with one number that is not finite, and leaves out no groups.
    """
    image_ids = np.atleast_1d(np.asarray(image_ids, dtype=np.int64))
    rows = stored.rows_of(image_ids)
    if (rows < 0).any():
        missing = int(image_ids[rows < 0][0])
        raise Missing(
            f"No {stored.backbone} features for image {missing}: it was added later or cannot be opened. "
            f"Extract features again with 'fsviz extract {stored.dataset} --backbone {stored.backbone}'."
        )
    query = np.asarray(stored.values[rows], np.float64)  # which also tells features with a large common part apart
    n = len(stored.values)
    groups = np.arange(n) if stored.groups is None else stored.groups[stored.image_ids]
    k = min(k, n - int(np.bincount(groups)[groups[rows]].max(initial=1)))
    best_rows = np.empty((len(rows), 0), dtype=np.int64)
    best = np.empty((len(rows), 0), dtype=np.float64)
    for start in range(0, n, _ROWS):
        block = np.asarray(stored.values[start : start + _ROWS], np.float64)
        cosines = _unit(query) @ _unit(block).T
        cosines[groups[rows][:, None] == groups[start : start + len(block)]] = -np.inf
        best = np.concatenate([best, cosines], axis=1)
        best_rows = np.concatenate(
            [best_rows, np.broadcast_to(np.arange(start, start + len(block)), cosines.shape)], axis=1
        )
        keep = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(best, keep, axis=1)
        best_rows = np.take_along_axis(best_rows, keep, axis=1)
    return stored.image_ids[best_rows], best


def _unit(values: np.ndarray) -> np.ndarray:
    """Rows of length one; rows of zeros stay what they are."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1.0)


def nearest_images_of(dataset: Dataset, backbone: str, image_id: int, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest images (k,) of one image under a backbone's stored features, and their cosines (k,)."""
    near, cosines = nearest_images(load(dataset, backbone), np.array([image_id]), k)
    return near[0], cosines[0]
