"""Class distance in features: coarsity by looks instead of meaning."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.coarsity import coarsity
from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "feature_distance",
    "Class distance in features",
    words="how far apart the mean features of the classes of a task are",
    what="The mean squared distance between the mean features of the task's classes, over its pairs of classes: "
    "coarsity with the backbone's eyes instead of a dictionary's. It takes labels of all images of the classes, so it "
    "explains more than it predicts.",
    formula=r"\frac{1}{W(W-1)} \sum_{i \neq j} \lVert \mu_i - \mu_j \rVert^2",
    symbols="W: classes of the task; mu_i: the mean of all features of a class, each of length one",
    direction="easier",
    needs=("looks",),
    paper="after Bennequin et al. 2022",
    place=4,
    cause="looks",
)


def measure(given: Given) -> np.ndarray:
    return coarsity(given.looks, given.positions)
