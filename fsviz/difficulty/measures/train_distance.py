"""Divergence from the training classes: how unlike those the classes of a task are (Arnold & Sha 2021, table 2)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "train_distance",
    "Divergence from the training classes",
    words="how unlike the classes to train on those of a task are",
    what="Class features are seen from two centres: that of the classes to train on, and that of the task's. Each "
    "centre makes a distribution over the classes, the nearer the likelier, and this is how far the two are apart. A "
    "backbone that was trained on other classes than these need not mind.",
    formula=r"\sum_k (p_k - q_k) \log \frac{p_k}{q_k}, \quad p_k \propto e^{-\lVert x_k - \mu \rVert^2}, \quad "
    r"q_k \propto e^{-\lVert x_k - \nu \rVert^2}",
    symbols="x_k: the mean feature of a class, of length one; mu: the centre of the classes to train on; nu: that of "
    "the task's classes; p_k, q_k: the two distributions over the classes of both",
    direction="harder",
    needs=("base",),
    paper="Arnold & Sha 2021",
    place=70,
    cause="transfer",
)


def measure(given: Given) -> np.ndarray:
    return given.base
