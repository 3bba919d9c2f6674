"""Uniform sampling: every set of classes is equally likely, as most benchmarks draw tasks."""

from __future__ import annotations

import numpy as np

from fsviz.records import Tasks
from fsviz.sampling.draw import REPEATS, check_draw, keep_distinct, stream
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_WAY


def sample_uniform(class_ids: np.ndarray, n_way: int, n_tasks: int, seed: int, repeats: bool = False) -> Tasks:
    """Tasks of n_way classes, every set of classes equally likely.

    Draws 2 x n_tasks, drops repeated class sets and keeps n_tasks (see `keep_distinct`); with `repeats`, keeps the
    first n_tasks as they were sampled. Classes ascend in a task.
    """
    class_ids = np.asarray(class_ids, dtype=np.int64)
    check_draw(len(class_ids), n_way, n_tasks, seed)
    from fsviz.sampling import kernels

    state = stream(seed, 0)
    positions = kernels.draw_uniform(len(class_ids), n_way, n_tasks if repeats else 2 * n_tasks, state)
    if repeats:
        return Tasks(class_ids[positions])
    return Tasks(class_ids[keep_distinct(positions, n_tasks, state)])


def _sample(pool: Pool, n_tasks: int, seed: int, n_way: int, repeats: bool = False) -> Tasks:
    return sample_uniform(pool.class_ids, n_way, n_tasks, seed, repeats)


SAMPLER = Sampler(
    "uniform",
    "Uniform",
    "Every set of classes is equally likely.",
    _sample,
    (N_WAY, REPEATS),
    order=0,
)
