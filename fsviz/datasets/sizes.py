"""Sizes of the classes of a dataset, and a few images that represent it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsviz.records import Dataset, SizeHistogram


def class_sizes(dataset: Dataset, n_bins: int = 24) -> SizeHistogram | None:
    """Number of classes per class size and split; None if the image counts are not available."""
    counts = dataset.classes["n_images"]
    if counts.isna().any() or not len(counts):
        return None
    sizes = counts.to_numpy(dtype=float)
    # Sizes over two decades are only readable on a logarithmic axis.
    wide = sizes.min() > 0 and sizes.max() / sizes.min() > 100
    if sizes.min() == sizes.max():
        edges = np.array([sizes[0] - 0.5, sizes[0] + 0.5])
    elif wide:
        edges = np.geomspace(sizes.min(), sizes.max() * 1.0001, n_bins + 1)
    else:
        edges = np.linspace(sizes.min() - 0.5, sizes.max() + 0.5, min(n_bins, int(np.ptp(sizes)) + 1) + 1)
    split = dataset.classes["split"].to_numpy()
    names = sorted(set(split), key=[*dataset.splits, *split].index)  # train before val before test
    bars = {name: np.histogram(sizes[split == name], edges)[0] for name in names}
    return SizeHistogram(edges, bars, float(np.median(sizes)), wide)


def classes_of_bar(dataset: Dataset, histogram: SizeHistogram, split: str, at: int) -> np.ndarray:
    """The class_ids that a bar of `class_sizes` counts: those of a split, in the bin with this number."""
    sizes = dataset.classes["n_images"].to_numpy(dtype=float)
    bins = np.clip(np.searchsorted(histogram.edges, sizes, side="right") - 1, 0, len(histogram.edges) - 2)
    return np.flatnonzero((dataset.classes["split"].to_numpy() == split) & (bins == at))


def split_by_size(n_images: Sequence[int] | np.ndarray) -> np.ndarray:
    """The split (C,) of every class by its number of images, as MetaCoCo does it (Zhang et al. 2024): the largest 64%
    train, the next 20% test, the smallest are val. Of classes as large as each other the first comes first."""
    n = len(n_images)
    n_train, n_test = round(0.64 * n), round(0.2 * n)
    split = np.full(n, "val", dtype=object)
    order = np.argsort(-np.asarray(n_images, dtype=float), kind="stable")
    split[order[:n_train]], split[order[n_train : n_train + n_test]] = "train", "test"
    return split


def sample_image_ids(dataset: Dataset, n: int, seed: int = 0, classes: Sequence[int] = ()) -> np.ndarray:
    """n images spread over as many classes as possible, or over those given; the same seed gives the same images."""
    class_ids = dataset.image_class_ids()
    order = np.random.default_rng(seed).permutation(len(class_ids))
    order = order[np.isin(class_ids[order], classes)] if len(classes) else order
    by_class = np.argsort(class_ids[order], kind="stable")
    _, starts, counts = np.unique(class_ids[order][by_class], return_index=True, return_counts=True)
    turn = np.empty(len(order), dtype=np.int64)  # how many images of its class come before an image
    turn[by_class] = np.arange(len(order)) - np.repeat(starts, counts)
    return order[np.argsort(turn, kind="stable")][:n]
