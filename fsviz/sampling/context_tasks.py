"""Tasks that differ in the contexts of their support alone: same classes, same queries (after MetaCoCo, 2024).

The paper defines two kinds of task, IID (support and query share contexts) and OOD (they share none), and published no
sampler. Ours samples, per task and class, a few contexts that hold the queries and one support (each has a query);
then a support from these contexts, one from the class's other contexts, and one from the query contexts of *other*
classes of the task. The samplers take one of the three, or a mixture. With the same seed they share their queries, so
their differences are paired task by task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from fsviz.sampling.draw import MAX_IMAGES, check_draw
from fsviz.sampling.sampler import Pool
from fsviz.sampling.samplers.uniform import sample_uniform
from fsviz.settings import N_QUERY, N_SHOT

_ENUMERATED = 12  # contexts of a class up to which every choice of them is tried
_TRIED = 512  # random choices of the contexts of a class with more
_BLOCK = 4_000_000  # candidates for a place in a task that are looked at together
_ROUNDS = 100  # attempts at a task whose groups leave too few images


@dataclass(frozen=True)
class ContextTasks:
    """T tasks with three supports each.

    class_ids (T, W), query (T, W, Q)
    same      (T, W, S) support in contexts of the class's queries
    shifted   (T, W, S) support in none of them
    swapped   (T, W, S) like shifted, in contexts of other classes' queries as far as the class is seen there
    luck      (T, W, S) a number from 0 to 1 for every place of a support
    """

    class_ids: np.ndarray
    query: np.ndarray
    same: np.ndarray
    shifted: np.ndarray
    swapped: np.ndarray
    luck: np.ndarray

    def mixed(self, shift: float) -> np.ndarray:
        """The support in which this share of the places, chosen by luck, is taken from other contexts. A place that
        changes does so once as the shift grows from 0 (all the same contexts) to 1 (all others)."""
        return np.where(self.luck < shift, self.shifted, self.same)


@dataclass(frozen=True)
class _ImagePools:
    """Images by class, padded: class_ids (C,), images and contexts (as numbers) (C, M), sizes (C, K) by context."""

    class_ids: np.ndarray
    images: np.ndarray
    contexts: np.ndarray
    sizes: np.ndarray


def sample_with(
    pool: Pool,
    n_tasks: int,
    seed: int,
    n_way: int,
    n_shot: int,
    n_query: int,
    support: Callable[[ContextTasks], np.ndarray],
) -> Tasks:
    """Matched tasks with the support that `support` chooses."""
    matched = sample_matched(pool, n_tasks, seed, n_way, n_shot, n_query)
    return Tasks(matched.class_ids, support(matched).copy(), matched.query)


def sample_matched(pool: Pool, n_tasks: int, seed: int, n_way: int, n_shot: int, n_query: int) -> ContextTasks:
    """Tasks of n_way classes, every set of possible classes equally likely.

    Some classes are excluded (see `excluded_classes`), as are images without a context. The same arguments give the
    same tasks. No group of images is on both sides of a task.
    """
    n_shot, n_query = N_SHOT.check(n_shot), N_QUERY.check(n_query)
    check_draw(len(pool.class_ids), n_way, n_tasks, seed)
    if n_tasks * n_way * (n_shot + n_query) > MAX_IMAGES:
        raise BadInput(
            f"Testbed too large: {n_tasks * n_way * (n_shot + n_query):,} images, limit {MAX_IMAGES:,}. "
            "Lower tasks, ways, shots or queries."
        )
    pools = _image_pools(pool)
    rng = np.random.default_rng(np.random.SeedSequence(entropy=int(seed), spawn_key=(3,)))
    choices = [_choices(sizes, n_shot, n_query) for sizes in pools.sizes]
    usable = np.array([len(sets) > 0 for sets in choices], dtype=bool)
    if usable.sum() < n_way:
        raise BadInput(
            f"Context tasks need {n_way} classes with enough images in two contexts; {int(usable.sum())} of "
            f"{len(usable)} qualify. {_reason(pool, pools, int(np.flatnonzero(~usable)[0]), n_shot, n_query)} "
            "Lower n_way, n_shot or n_query, or choose another split."
        )
    class_ids = np.asarray(sample_uniform(pools.class_ids[usable], n_way, n_tasks, seed).class_ids)
    place = np.full(int(pools.class_ids.max()) + 1, PAD)
    place[pools.class_ids] = np.arange(len(pools.class_ids))
    parts = [np.empty((n_tasks, n_way, n), dtype=np.int64) for n in (n_query, n_shot, n_shot, n_shot)]
    step = max(1, _BLOCK // (n_way * pools.images.shape[1]))
    for start in range(0, n_tasks, step):
        todo = np.arange(start, min(start + step, n_tasks))
        for _ in range(_ROUNDS):
            hands, failed = _sample(pool, pools, choices, place[class_ids[todo]], n_shot, n_query, rng)
            for part, hand in zip(parts, hands, strict=True):
                part[todo] = hand
            todo = todo[failed.any(1)]
            if not len(todo):
                break
            stuck = int(class_ids[todo[0], failed[failed.any(1)][0].argmax()])
        else:
            raise BadInput(
                f"Class {_name(pool, stuck)} has too few separate groups (duplicates, frames) in other contexts for "
                f"{n_shot} + {n_query} images. Lower n_shot or n_query, or use --no-keep-groups."
            )
    query, same, shifted, swapped = parts
    return ContextTasks(class_ids, query, same, shifted, swapped, rng.random((n_tasks, n_way, n_shot)))


def excluded_classes(pool: Pool, n_shot: int, n_query: int, **other_settings: object) -> dict[int, str]:
    """The classes that no matched task can hold, each with a sentence that says why; other settings change nothing."""
    pools = _image_pools(pool)
    return {
        int(class_id): _reason(pool, pools, i, n_shot, n_query)
        for i, class_id in enumerate(pools.class_ids)
        if not len(_choices(pools.sizes[i], n_shot, n_query))
    }


def _reason(pool: Pool, pools: _ImagePools, i: int, n_shot: int, n_query: int) -> str:
    n_contexts, n_images = int((pools.sizes[i] > 0).sum()), int(pools.sizes[i].sum())
    needed = f"{n_query} + {n_shot} in some contexts and {n_shot} in others"
    if n_contexts < 2:
        needed = "two contexts or more"
    return (
        f"Class {_name(pool, int(pools.class_ids[i]))} needs {needed}: its {n_images:,} images with a context are in "
        f"{n_contexts:,}."
    )


def _name(pool: Pool, class_id: int) -> str:
    return str(class_id) if pool.class_names is None else repr(str(pool.class_names[class_id]))


def _image_pools(pool: Pool) -> _ImagePools:
    assert pool.image_class_ids is not None and pool.contexts is not None  # they are among the needs
    class_ids = np.asarray(pool.class_ids, dtype=np.int64)
    names, codes = np.unique(pool.contexts, return_inverse=True)
    there = np.isin(pool.image_class_ids, class_ids) & (np.asarray(pool.contexts) != "")
    images_of = [np.flatnonzero(there & (pool.image_class_ids == c)) for c in class_ids]
    images = np.full((len(class_ids), max((len(image_ids) for image_ids in images_of), default=0)), PAD)
    for row, image_ids in zip(images, images_of, strict=True):
        row[: len(image_ids)] = image_ids
    contexts = np.where(images == PAD, PAD, codes[images])
    sizes = np.stack([np.bincount(row[row != PAD], minlength=len(names)) for row in contexts])
    return _ImagePools(class_ids, images, contexts, sizes)


def _choices(sizes: np.ndarray, n_shot: int, n_query: int) -> np.ndarray:
    """Choices (B, K) of contexts for the queries of a class with `sizes` (K,) images in each.

    Together they have room for queries and a support, the rest has room for a support, and there are as many queries
    as contexts at least; none could be excluded. All of them where contexts are few, else those found by trying.
    """
    here = np.flatnonzero(sizes)
    if len(here) < 2:
        return np.zeros((0, len(sizes)), dtype=bool)
    if len(here) <= _ENUMERATED:
        tried = (np.arange(2 ** len(here))[:, None] >> np.arange(len(here)) & 1).astype(bool)
    else:
        rng = np.random.default_rng(0)
        orders = np.argsort(rng.random((_TRIED, len(here))), axis=1)
        orders[0] = np.argsort(-sizes[here], kind="stable")
        before = np.cumsum(sizes[here][orders], axis=1) - sizes[here][orders]
        tried = np.zeros(orders.shape, dtype=bool)
        np.put_along_axis(tried, orders, before < n_shot + n_query, axis=1)
    held = tried @ sizes[here]
    least = np.where(tried, sizes[here], sizes.sum() + 1).min(1)
    fine = (held >= n_shot + n_query) & (sizes.sum() - held >= n_shot) & (tried.sum(1) <= n_query)
    if len(here) <= _ENUMERATED:
        fine &= held - least < n_shot + n_query
    selections = np.zeros((int(fine.sum()), len(sizes)), dtype=bool)
    selections[:, here] = tried[fine]
    return selections


def _sample(
    pool: Pool,
    pools: _ImagePools,
    choices: list[np.ndarray],
    rows: np.ndarray,
    n_shot: int,
    n_query: int,
    rng: np.random.Generator,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Queries and the three supports of tasks whose classes are at these rows (T, W) of the pools; and where groups
    left too few images (T, W)."""
    n_choices = np.array([len(sets) for sets in choices])
    starts = np.cumsum(n_choices) - n_choices
    selected = np.concatenate(choices)[
        starts[rows] + (rng.random(rows.shape) * n_choices[rows]).astype(int)
    ]  # (T, W, K)
    shuffled = np.argsort(rng.random((*rows.shape, pools.images.shape[1])), axis=2)
    images = np.take_along_axis(pools.images[rows], shuffled, 2)  # (T, W, M), every class in a random order
    contexts = np.take_along_axis(pools.contexts[rows], shuffled, 2)
    there = images != PAD
    own = np.take_along_axis(selected, np.where(there, contexts, 0), 2) & there
    # the first image of every context comes before all others, so that each has a query
    by_context = np.argsort(contexts, axis=2, kind="stable")
    grouped = np.take_along_axis(contexts, by_context, 2)
    first = np.empty(own.shape, dtype=bool)
    np.put_along_axis(first, by_context, np.diff(grouped, axis=2, prepend=-2) != 0, 2)
    order = np.argsort(np.where(own, np.where(first, 0, 1), 2), axis=2, kind="stable")
    query = np.take_along_axis(images, order[:, :, :n_query], 2)
    free = there.copy()
    np.put_along_axis(free, order[:, :, :n_query], False, 2)
    if pool.groups is not None:
        task = np.arange(len(rows))[:, None, None] * (int(pool.groups.max()) + 1)
        free &= ~np.isin(task + pool.groups[images], task + pool.groups[query])
    after = np.take_along_axis(np.roll(selected, -1, axis=1), np.where(there, contexts, 0), 2)
    any_of = np.take_along_axis(
        np.broadcast_to(selected.any(1, keepdims=True), selected.shape), np.where(there, contexts, 0), 2
    )
    same = np.where(free & own, 0, 9)
    shifted = np.where(free & ~own, 0, 9)
    swapped = np.where(free & ~own, np.where(after, 0, np.where(any_of, 1, 2)), 9)
    hands, failed = [query], np.zeros(rows.shape, dtype=bool)
    for rank in (same, shifted, swapped):
        best = np.argsort(rank, axis=2, kind="stable")[:, :, :n_shot]
        hands.append(np.take_along_axis(images, best, 2))
        failed |= (np.take_along_axis(rank, best, 2) == 9).any(2)
    return tuple(hands), failed
