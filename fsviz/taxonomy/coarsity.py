"""Coarsity: how far apart in meaning the classes of a task are (Bennequin et al. 2022, equation 2)."""

from __future__ import annotations

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD


def coarsity(distances: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Mean squared distance between the classes of a task, over its pairs of different classes.

    distances  (C, C) symmetric, zero diagonal
    positions  (T, W) places of the classes in that matrix (PAD where a task has fewer ways), or (W,) for one task
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


def split_positions(class_ids: np.ndarray, split_class_ids: np.ndarray) -> np.ndarray:
    """Place in the split of every class_id, PAD where it is PAD; refuses classes outside the split."""
    class_ids, split_class_ids = np.asarray(class_ids), np.asarray(split_class_ids)
    size = int(max(class_ids.max(initial=0), split_class_ids.max(initial=0))) + 1
    place = np.full(size + 1, PAD, dtype=np.int64)
    place[split_class_ids] = np.arange(len(split_class_ids))
    found = place[np.where(class_ids == PAD, size, class_ids)]
    outside = (found == PAD) & (class_ids != PAD)
    if outside.any():
        raise BadInput(
            f"A task may hold only classes of its split. Got class_id {int(class_ids[outside][0])}. "
            "Choose the split the tasks were drawn from, or 'all'."
        )
    return found
