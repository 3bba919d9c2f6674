"""Errors of ProtoNet on every pair of classes.

T tasks of the same C classes hold T two-way tasks of each of their C (C - 1) / 2 pairs: the support and the queries of
two classes. One product of queries and prototypes answers all pairs of a task at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import Features, Progress, Tasks

MIN_TASKS = 3  # of an interval
_MEMORY = 256 * 2**20  # bytes of features that are kept between tasks


def two_way_errors(features: Features, tasks: Tasks, progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Share of incorrect predictions (C, C) on every pair of classes, and the half width of its 95% CI over tasks.

    tasks  hold the same C classes in the same order, each with the same number of support and query images
    A tie counts as half an error. The interval is NaN for fewer than three tasks, and both are NaN for a class and
    itself.
    """
    n_tasks, n_way, n_query = tasks.query.shape
    if not (tasks.class_ids == tasks.class_ids[:1]).all():
        raise BadInput("Errors on pairs need tasks of the same classes in the same order. Sample them from one list.")
    total, squares = np.zeros((n_way, n_way)), np.zeros((n_way, n_way))
    own = np.arange(n_way)
    rows = [features.rows_of(image_ids).reshape(n_tasks, -1) for image_ids in (tasks.support, tasks.query)]
    read = _reader(features, *rows)
    for task in range(n_tasks):  # each holds every pair: a product large enough to be alone
        support, query = (read(at[task]) for at in rows)
        prototypes = support.reshape(n_way, -1, support.shape[1]).mean(axis=1)
        scores = query @ (2 * prototypes.T) - np.square(prototypes).sum(axis=1)
        scores = scores.reshape(n_way, n_query, n_way)
        gap = scores - scores[own, :, own][:, :, None]
        wrong = ((gap > 0) + 0.5 * (gap == 0)).mean(axis=1)
        errors = (wrong + wrong.T) / 2
        total += errors
        squares += errors**2
        if progress is not None and task % 10 == 9:
            progress(task + 1, n_tasks, "tasks of every pair")
    mean = total / n_tasks
    variance = np.maximum(squares / n_tasks - mean**2, 0) * n_tasks / max(n_tasks - 1, 1)
    ci95 = 1.96 * np.sqrt(variance / n_tasks) if n_tasks >= MIN_TASKS else np.full_like(mean, np.nan)
    for matrix in (mean, ci95):
        np.fill_diagonal(matrix, np.nan)
    return mean, ci95


def _reader(features: Features, support: np.ndarray, query: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Features of rows in float32, around the middle of the first task and at most about 1: distances stay the same up
    to a factor, and small differences of large numbers lose no digits. All images are read at once if memory allows."""
    first = np.asarray(features.values[support[0]], dtype=np.float64)
    origin = first.mean(axis=0)
    scale = float(np.abs(first - origin).max()) or 1.0

    def read(rows: np.ndarray) -> np.ndarray:
        return ((np.asarray(features.values[rows], dtype=np.float64) - origin) / scale).astype(np.float32)

    used = np.union1d(support, query)
    if len(used) * len(origin) * 4 > _MEMORY:
        return read
    values = read(used)
    return lambda rows: values[np.searchsorted(used, rows)]
