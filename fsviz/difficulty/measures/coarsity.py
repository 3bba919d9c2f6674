"""Coarsity: mean squared semantic distance between a task's classes (Bennequin et al. 2022, equation 2)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs
from fsviz.errors import BadInput
from fsviz.records import PAD

MEASURE = Measure(
    "coarsity",
    "Coarsity",
    description="Mean squared semantic distance between the task's classes. Fine-grained tasks (low coarsity) tend to "
    "be harder, because semantically close classes tend to look alike.",
    formula=r"\frac{1}{W(W-1)} \sum_{i \neq j} D(c_i, c_j)^2",
    symbols="W: classes of the task; c_i: class i; D: semantic distance between two classes",
    direction="easier",
    needs=("distances",),
    paper="Bennequin et al. 2022",
    paper_name="coarsity",
    order=0,
    cause="meaning",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return coarsity(inputs.distances, inputs.positions)


def coarsity(distances: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Mean squared distance between the classes of a task, over its pairs of different classes.

    distances  (C, C) symmetric, zero diagonal
    positions  (T, W) places of the classes in that matrix (PAD if a task has fewer ways), or (W,) for one task
    returns    (T,), or one number for one task; small means the classes are close in meaning
    """
    positions = np.asarray(positions, dtype=np.int64)
    if positions.ndim == 1:
        return coarsity(distances, positions[None])[0]
    ways = (positions != PAD).sum(axis=1)
    if len(positions) and ways.min() < 2:
        raise BadInput(
            f"Coarsity compares classes: a task needs at least 2. Task {int(ways.argmin())} has {int(ways.min())}."
        )
    # One more row and column of zeros takes the padding.
    squared = np.zeros((len(distances) + 1, len(distances) + 1))
    squared[:-1, :-1] = distances**2
    positions = np.where(positions == PAD, len(distances), positions)
    flat, rows = squared.ravel(), positions * len(squared)
    total = np.zeros(len(positions))
    for way in range(positions.shape[1] - 1):  # each pair once: a class with those after it
        total += flat.take(rows[:, way, None] + positions[:, way + 1 :]).sum(axis=1)
    return 2 * total / (ways * (ways - 1))
