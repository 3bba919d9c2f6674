"""The images nearest to an image in feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsviz.errors import Missing
from fsviz.features.store import load
from fsviz.records import Dataset, Features

if TYPE_CHECKING:
    import torch

NEAREST = 10  # images that are looked at around each one
_ROWS = 16_384  # feature rows compared at a time, so that a large memory-mapped store never has to fit
_QUERIES = 512  # ... with so many images at once
_MOST_PRODUCTS = 150_000_000_000  # multiplications; beyond, a sample of the images is compared: a few seconds


@dataclass(frozen=True)
class OwnClassNeighbours:
    """Number of the NEAREST images of each image that are of its class.

    image_ids (n,)  the images that were compared: all, or a sample evenly spread over them
    counts (n,)     neighbours of the own class
    near (n, k)     image_ids of the nearest images, the nearest first
    possible (n,)   images of the own class that could be neighbours, outside the own group of copies
    n_images        all images with features
    """

    image_ids: np.ndarray
    counts: np.ndarray
    near: np.ndarray
    possible: np.ndarray
    n_images: int

    @property
    def is_sample(self) -> bool:
        return len(self.image_ids) < self.n_images

    def among(self, n: int) -> np.ndarray:
        """Counts (n,) of the image_ids below n, NaN for those that were not compared."""
        counts = np.full(n, np.nan)
        counts[self.image_ids] = self.counts
        return counts

    @property
    def strangers(self) -> np.ndarray:
        """Image_ids of which no neighbour is of their class, though the class has other images."""
        return self.image_ids[(self.counts == 0) & (self.possible > 0)]


def own_class_neighbours(dataset: Dataset, backbone: str) -> OwnClassNeighbours:
    """Counts the images of the own class among the nearest ones of each image, by the cosine of stored features.

    Images of the own group (copies, frames) do not count. With very many images a sample is compared with all.
    """
    import torch

    stored = load(dataset, backbone)
    n, dims = stored.values.shape
    groups = np.arange(n) if stored.groups is None else stored.groups[stored.image_ids]
    n_compared = int(min(n, max(_QUERIES, _MOST_PRODUCTS // max(n * dims, 1))))
    rows = np.unique(np.linspace(0, n - 1, n_compared).round().astype(np.int64)) if n else np.zeros(0, np.int64)
    k = max(0, min(NEAREST, n - int(np.bincount(groups).max(initial=1))))
    group_of = torch.as_tensor(groups)
    near = np.empty((len(rows), k), np.int64)
    for start in range(0, len(rows), _QUERIES):
        part = rows[start : start + _QUERIES]
        query = unit_tensor(stored.values[part])
        best, best_rows = torch.empty((len(part), 0)), torch.empty((len(part), 0), dtype=torch.int64)
        for first in range(0, n, _ROWS):
            cosines = query @ unit_tensor(stored.values[first : first + _ROWS]).T
            cosines[group_of[part][:, None] == group_of[first : first + cosines.shape[1]]] = -torch.inf
            top, places = cosines.topk(min(k, cosines.shape[1]), dim=1)
            best, best_rows = torch.cat([best, top], 1), torch.cat([best_rows, places + first], 1)
            best, keep = best.topk(min(k, best.shape[1]), dim=1)
            best_rows = best_rows.gather(1, keep)
        near[start : start + len(part)] = best_rows.numpy()
    own = stored.class_ids[rows]
    pairs = np.unique(np.stack([stored.class_ids, groups], axis=1), axis=0, return_inverse=True, return_counts=True)
    in_group = pairs[2][pairs[1].ravel()][rows]
    return OwnClassNeighbours(
        stored.image_ids[rows],
        (stored.class_ids[near] == own[:, None]).sum(axis=1),
        stored.image_ids[near],
        np.bincount(stored.class_ids)[own] - in_group,
        n,
    )


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
        cosines = unit_rows(query) @ unit_rows(block).T
        cosines[groups[rows][:, None] == groups[start : start + len(block)]] = -np.inf
        best = np.concatenate([best, cosines], axis=1)
        best_rows = np.concatenate(
            [best_rows, np.broadcast_to(np.arange(start, start + len(block)), cosines.shape)], axis=1
        )
        keep = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(best, keep, axis=1)
        best_rows = np.take_along_axis(best_rows, keep, axis=1)
    return stored.image_ids[best_rows], best


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Rows of length one; rows of zeros stay what they are."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1.0)


def unit_tensor(values: np.ndarray) -> torch.Tensor:
    """Vectors (..., D) of length one as float32, fast; one with a number that is not finite becomes zeros."""
    import torch

    rows = torch.from_numpy(np.array(values, dtype=np.float32))  # a copy: the store is read-only
    rows = torch.nn.functional.normalize(rows, dim=-1)
    return rows.nan_to_num_(0.0) if not rows.isfinite().all() else rows


def nearest_images_of(dataset: Dataset, backbone: str, image_id: int, k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest images (k,) of one image under a backbone's stored features, and their cosines (k,)."""
    near, cosines = nearest_images(load(dataset, backbone), np.array([image_id]), k)
    return near[0], cosines[0]
