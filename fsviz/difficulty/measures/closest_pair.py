"""Closest class pair: semantic distance between the two closest classes of a task."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs
from fsviz.records import PAD

MEASURE = Measure(
    "closest_pair",
    "Closest class pair (semantic)",
    description="Semantic distance between the two closest classes. One close pair is enough to cost accuracy, and a "
    "mean over all pairs hides it.",
    formula=r"\min_{i \neq j} D(c_i, c_j)",
    symbols="c_i: classes of the task; D: semantic distance between two classes",
    direction="easier",
    needs=("distances",),
    paper="after Bennequin et al. 2022",
    order=2,
    cause="meaning",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    n_classes = len(inputs.distances)
    apart = np.full((n_classes + 1, n_classes + 1), np.inf)  # one more row and column takes the padding
    apart[:-1, :-1] = inputs.distances
    positions = np.where(inputs.positions == PAD, n_classes, inputs.positions)
    smallest = np.full(len(positions), np.inf)
    for way in range(positions.shape[1] - 1):  # each pair once: a class with those after it
        np.minimum(smallest, apart[positions[:, way, None], positions[:, way + 1 :]].min(axis=1), out=smallest)
    return np.where(np.isfinite(smallest), smallest, np.nan)
