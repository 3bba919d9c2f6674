"""Mean features of classes: the points that splits are searched on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput, Missing
from fsviz.records import Dataset, Features
from fsviz.splits import clustering


@dataclass(frozen=True)
class ClassFeatures:
    """Mean features of the classes of a dataset under a backbone.

    points   (M, d) of unit length, then centred and along their principal axes (see splits.clustering.class_points)
    without  names of classes without features: they are in no split
    """

    dataset: str
    backbone: str
    class_ids: np.ndarray
    names: tuple[str, ...]
    points: np.ndarray
    without: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.class_ids)

    @property
    def cache_key(self) -> tuple[str, str, str]:
        """The key of these features in a cache."""
        digest = hashlib.blake2b(np.ascontiguousarray(self.points).tobytes(), digest_size=12).hexdigest()
        return self.dataset, self.backbone, digest

    def rows_of(self, class_ids: np.ndarray) -> np.ndarray:
        """Rows of these classes among the points."""
        missing = np.setdiff1d(class_ids, self.class_ids)
        if len(missing):
            raise Missing(f"{len(missing):,} of these classes have no features under {self.backbone}. Extract them.")
        return np.searchsorted(self.class_ids, class_ids)


def mean_features(dataset: Dataset, table: Features, least: int = clustering.MIN_CLASSES) -> ClassFeatures:
    """The mean feature of every class that has images in this table of features.

    least  the fewest classes accepted: a split needs MIN_CLASSES, distances two
    """
    of_image = table.class_ids
    counts = np.bincount(of_image, minlength=dataset.n_classes)
    class_ids = np.flatnonzero(counts)
    if len(class_ids) < least:
        raise BadInput(
            f"A split at a target divergence needs at least {clustering.MIN_CLASSES} classes with features: one "
            f"fifth of them are test classes. {dataset.title} has {len(class_ids)}. Choose a larger dataset."
        )
    means = np.stack([np.asarray(table.values[of_image == c], dtype=float).mean(axis=0) for c in class_ids])
    names = np.array(dataset.distinct_names(np.arange(dataset.n_classes)), dtype=object)
    return ClassFeatures(
        dataset.name,
        table.backbone,
        class_ids,
        tuple(names[class_ids]),
        clustering.class_points(means, least),
        tuple(names[counts == 0]),
    )
