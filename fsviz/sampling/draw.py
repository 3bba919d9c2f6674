"""Samplers: which classes, and then which images, make a task.

They take arrays and never look at a taxonomy or at features, so any distance between classes will do.
"""

from __future__ import annotations

import math

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks

LARGEST_ALPHA = LARGEST_BETA = 10_000.0
MOST_TASKS = 1_000_000


def sample_uniform(class_ids: np.ndarray, n_way: int, n_tasks: int, seed: int) -> Tasks:
    """Tasks of n_way classes, every set of classes equally likely.

    Draws 2 x n_tasks, drops repeated class sets and keeps n_tasks (see `_keep`). Classes are ascending within a task.
    """
    class_ids = _checked(class_ids, n_way, n_tasks, seed)
    from fsviz.sampling import kernels

    state = _state(seed, 0)
    drawn = kernels.draw_uniform(len(class_ids), n_way, 2 * n_tasks, state)
    return Tasks(class_ids[_keep(drawn, n_tasks, state)])


def sample_semantic(
    distances: np.ndarray,
    class_ids: np.ndarray,
    n_way: int,
    n_tasks: int,
    alpha: float,
    beta: float,
    seed: int,
) -> Tasks:
    """Tasks whose classes are close, with every class used about equally often (Bennequin et al. 2022, algorithm 1).

    distances  (C, C) between the classes of class_ids (C,), any non-negative symmetric matrix
    alpha      weight of closeness: a pair's potential is exp(-alpha distance); 0 ignores the distance
    beta       strength of balance: a class drawn often is weighted by exp(-beta occ / max occ); 0 ignores it
    Draws 2 x n_tasks in sequence, drops repeated class sets and keeps n_tasks.
    """
    class_ids = _checked(class_ids, n_way, n_tasks, seed)
    for name, value, most in (("alpha", alpha, LARGEST_ALPHA), ("beta", beta, LARGEST_BETA)):
        if not (isinstance(value, int | float | np.number) and math.isfinite(value) and 0 <= value <= most):
            raise BadInput(f"{name} must be a number between 0 and {most:,.0f}. Got {value}.")
    distances = np.asarray(distances, dtype=float)
    if distances.shape != (len(class_ids), len(class_ids)):
        raise BadInput(
            f"distances must have one row and column a class, {len(class_ids)} x {len(class_ids)}. "
            f"Got shape {distances.shape}."
        )
    finite = bool(np.isfinite(distances).all())
    if not finite or distances.min() < 0 or np.abs(distances - distances.T).max() > 1e-8 * max(distances.max(), 1):
        raise BadInput("distances must be finite, not negative and symmetric. Mend the matrix.")
    from fsviz.sampling import kernels

    cost = alpha * distances
    padded = -(-len(class_ids) // kernels.COLUMNS) * kernels.COLUMNS
    potential = np.zeros((len(class_ids), padded))
    potential[:, : len(class_ids)] = np.exp(-cost)
    np.fill_diagonal(potential, 0.0)
    state = _state(seed, 1)
    drawn = kernels.draw_semantic(potential, cost, float(beta), len(class_ids), n_way, 2 * n_tasks, state)
    return Tasks(class_ids[_keep(drawn, n_tasks, state)])


def assign_images(tasks: Tasks, image_class_ids: np.ndarray, n_shot: int, n_query: int, seed: int) -> Tasks:
    """The same tasks with n_shot support and n_query query images a class.

    image_class_ids  (N,) class of every image_id
    Each class deals its images without replacement across the whole list of tasks and reshuffles when it runs out:
    images of a class are used equally often (up to one), and support and query of a task share none.
    """
    n_shot, n_query = _whole("n_shot", n_shot, 1), _whole("n_query", n_query, 1)
    _whole("seed", seed, 0)
    image_class_ids = np.asarray(image_class_ids, dtype=np.int64)
    class_ids = np.asarray(tasks.class_ids, dtype=np.int64)
    hand = n_shot + n_query
    n_classes = int(max(class_ids.max(initial=0), image_class_ids.max(initial=0))) + 1
    sizes = np.bincount(image_class_ids[image_class_ids >= 0], minlength=n_classes)
    used = np.unique(class_ids[class_ids != PAD])
    short = used[sizes[used] < hand]
    if len(short):
        raise BadInput(
            f"A class needs n_shot + n_query = {hand} images. Class {int(short[0])} has {int(sizes[short[0]])}"
            f"{f', and {len(short) - 1} more have too few' if len(short) > 1 else ''}. Lower n_shot or n_query."
        )
    if class_ids.size * hand > 200_000_000:
        raise BadInput(
            f"A testbed may hold at most 200 million images. Got {class_ids.size * hand:,}. "
            "Lower the number of tasks, ways, shots or queries."
        )
    from fsviz.sampling import kernels

    if (image_class_ids[1:] >= image_class_ids[:-1]).all() and (image_class_ids[:1] >= 0).all():
        decks = np.arange(len(image_class_ids))  # already grouped: the common case, and some datasets are large
    else:
        decks = np.argsort(image_class_ids, kind="stable")[(image_class_ids < 0).sum() :]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    dealt = kernels.deal(class_ids, decks, starts, sizes, hand, _state(seed, 2))
    return Tasks(tasks.class_ids, dealt[:, :, :n_shot].copy(), dealt[:, :, n_shot:].copy(), tasks.measures)


def count_distinct(class_ids: np.ndarray) -> int:
    """How many different sets of classes a list of tasks holds."""
    from fsviz.sampling import kernels

    return len(kernels.first_of_each(np.sort(class_ids, axis=1)))


def _keep(drawn: np.ndarray, n_tasks: int, state: np.ndarray) -> np.ndarray:
    """n_tasks of the drawn tasks (rows ascending): different class sets, chosen at random, in the order drawn.

    When the draws hold fewer different sets than asked for (few classes, or a large alpha), all of them are kept and
    repeats fill the rest: their images will differ.
    """
    from fsviz.sampling import kernels

    first = kernels.first_of_each(drawn)
    if len(first) >= n_tasks:
        return drawn[first[kernels.choose(len(first), n_tasks, state)]]
    repeats = np.setdiff1d(np.arange(len(drawn)), first)
    kept = repeats[kernels.choose(len(repeats), n_tasks - len(first), state)]
    return drawn[np.sort(np.concatenate([first, kept]))]


def _state(seed: int, stream: int) -> np.ndarray:
    """Four words for the generator; each sampler has its own stream of a seed."""
    return np.random.SeedSequence(entropy=int(seed), spawn_key=(stream,)).generate_state(4, np.uint64)


def _whole(name: str, value: object, least: int, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise BadInput(f"{name} must be a whole number of at least {least}. Got {value!r}.")
    if most is not None and value > most:
        raise BadInput(f"{name} must be at most {most:,}. Got {value:,}.")
    return int(value)


def _checked(class_ids: np.ndarray, n_way: int, n_tasks: int, seed: int) -> np.ndarray:
    class_ids = np.asarray(class_ids, dtype=np.int64)
    _whole("n_way", n_way, 2)
    _whole("n_tasks", n_tasks, 1, MOST_TASKS)
    _whole("seed", seed, 0)
    if n_way > len(class_ids):
        raise BadInput(
            f"n_way must be at most {len(class_ids)}, the number of classes to draw from. Got {n_way}. "
            "Lower n_way or pick another split."
        )
    return class_ids
