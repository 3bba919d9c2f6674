"""Smallest class distance: how near in meaning the two nearest classes of a task are."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure
from fsviz.records import PAD

MEASURE = Measure(
    "closest_pair",
    "Smallest class distance",
    words="how near in meaning the two nearest classes of a task are",
    what="Coarsity is a mean over all pairs of classes. One pair that means nearly the same is enough to cost a task "
    "many answers, and this is the distance of that pair.",
    formula=r"\min_{i \neq j} D(c_i, c_j)",
    symbols="c_i: classes of the task; D: the distance between two classes",
    direction="easier",
    needs=("distances",),
    paper="after Bennequin et al. 2022",
    place=2,
    cause="meaning",
)


def measure(given: Given) -> np.ndarray:
    n_classes = len(given.distances)
    apart = np.full((n_classes + 1, n_classes + 1), np.inf)  # one more row and column takes the padding
    apart[:-1, :-1] = given.distances
    positions = np.where(given.positions == PAD, n_classes, given.positions)
    smallest = np.full(len(positions), np.inf)
    for way in range(positions.shape[1] - 1):  # each pair once: a class with those after it
        np.minimum(smallest, apart[positions[:, way, None], positions[:, way + 1 :]].min(axis=1), out=smallest)
    return np.where(np.isfinite(smallest), smallest, np.nan)
