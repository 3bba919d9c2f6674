"""Semantic sampling: classes close in meaning come together (Bennequin et al. 2022, algorithm 1)."""

from __future__ import annotations

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import Tasks
from fsviz.sampling.draw import REPEATS, check_draw, keep_distinct, stream
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_WAY, Setting

ALPHA = Setting(
    "alpha",
    "Semantic weight α",
    "Higher prefers closer classes: weight exp(−αD). 0 ignores semantics. The default suits the class "
    "distance and, if you added few classes, their distances.",
    "float",
    0.383,
    0.0,
    10_000.0,
    step=0.001,
    typical=2.0,
    brief="a{}",
)
BETA = Setting(
    "beta",
    "Class balance β",
    "Higher evens out how often each class is used: weight exp(−β occ / max occ), where occ is 1 + the "
    "number of earlier tasks with the class. 0 is off.",
    "float",
    100.0,
    0.0,
    10_000.0,
    step=1.0,
    typical=200.0,
    brief="b{}",
    advanced=True,
)


def sample_semantic(
    distances: np.ndarray,
    class_ids: np.ndarray,
    n_way: int,
    n_tasks: int,
    alpha: float,
    beta: float,
    seed: int,
    repeats: bool = False,
) -> Tasks:
    """Tasks whose classes are close, with every class used about equally often (Bennequin et al. 2022, algorithm 1).

    distances  (C, C) between the classes of class_ids (C,), any non-negative symmetric matrix
    alpha      weight of closeness: a pair's potential is exp(-alpha distance); 0 ignores the distance
    beta       strength of balance: a class sampled often is weighted by exp(-beta occ / max occ); 0 ignores it
    repeats    keep the first n_tasks as they were sampled: their difficulty does not depend on their number
    Without, samples 2 x n_tasks in sequence, drops repeated class sets and keeps n_tasks.
    """
    class_ids = np.asarray(class_ids, dtype=np.int64)
    check_draw(len(class_ids), n_way, n_tasks, seed)
    alpha, beta = ALPHA.check(alpha), BETA.check(beta)
    distances = np.asarray(distances, dtype=float)
    if distances.shape != (len(class_ids), len(class_ids)):
        raise BadInput(
            f"distances must have one row and column per class, {len(class_ids)} x {len(class_ids)}. "
            f"Got shape {distances.shape}."
        )
    finite = bool(np.isfinite(distances).all())
    if not finite or distances.min() < 0 or np.abs(distances - distances.T).max() > 1e-8 * max(distances.max(), 1):
        raise BadInput("distances must be finite, not negative and symmetric. Fix the matrix.")
    from fsviz.sampling import kernels

    cost = alpha * distances
    padded = -(-len(class_ids) // kernels.COLUMNS) * kernels.COLUMNS
    potential = np.zeros((len(class_ids), padded))
    potential[:, : len(class_ids)] = np.exp(-cost)
    np.fill_diagonal(potential, 0.0)
    state = stream(seed, 1)
    n_drawn = n_tasks if repeats else 2 * n_tasks
    positions = kernels.draw_semantic(potential, cost, beta, len(class_ids), n_way, n_drawn, state)
    if repeats:
        return Tasks(class_ids[positions])
    return Tasks(class_ids[keep_distinct(positions, n_tasks, state)])


def _sample(pool: Pool, n_tasks: int, seed: int, n_way: int, alpha: float, beta: float, repeats: bool = False) -> Tasks:
    assert pool.distances is not None  # it is among the needs
    return sample_semantic(pool.distances, pool.class_ids, n_way, n_tasks, alpha, beta, seed, repeats)


SAMPLER = Sampler(
    "semantic",
    "Semantic",
    "Prefers semantically close classes and balances class use (Bennequin et al. 2022).",
    _sample,
    (ALPHA, BETA, N_WAY, REPEATS),
    needs=("distances",),
    order=1,
    formula=r"P(c \mid t) \propto e^{-\beta \, o_c / \max o} \prod_{a \in t} e^{-\alpha D(a, c)}",
    symbols="P: how likely class c is drawn next; t: the classes that the task has already; a: one of them; D: the "
    "distance between two classes; alpha: the weight of closeness; o_c: one more than the tasks so far that hold c; o: "
    "that number of all classes; beta: the strength of balance",
    paper="Bennequin et al. 2022",
)
