"""Tasks of variable way and shot, as Meta-Dataset samples them (Triantafillou et al. 2020, section 3.2).

Per task: the number of classes is uniform; queries are as many for every class, at most half of the smallest class;
the size of the support set depends on how many images there are; shots follow class sizes, made uneven by noise.
With follow_hierarchy, the classes of a task are from one concept of the taxonomy, and their number follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from fsviz.sampling.draw import MAX_IMAGES
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_QUERY, N_TASKS, N_WAY, SEED, Setting

MIN_WAY = N_WAY.with_(name="min_way", title="Fewest classes", help="Smallest number of classes per task.", brief="{}to")
MAX_WAY = N_WAY.with_(name="max_way", title="Most classes", help="Largest number of classes per task.", default=50)
MAX_QUERY = N_QUERY.with_(
    name="max_query", title="Most queries", help="Largest number of query images per class.", typical=50, brief=""
)
MAX_SUPPORT = Setting(
    "max_support",
    "Most support images",
    "Largest number of support images of a task, over all its classes.",
    "int",
    500,
    2,
    10_000,
    typical=1000,
)
FOLLOW = Setting(
    "follow_hierarchy",
    "Follow the hierarchy",
    "Take the classes of a task from one concept of the taxonomy, as Meta-Dataset does for ImageNet and "
    "Omniglot. Every concept with enough classes, and at most 392, is equally likely; a task holds all "
    "its classes, or as many as allowed. In a two-level taxonomy (alphabets and characters) the number of "
    "classes is random.",
    "flag",
    False,
)


@dataclass(frozen=True)
class VariableLimits:
    """The sampler's constants; the defaults are Meta-Dataset's."""

    min_way: int = MIN_WAY.default
    max_way: int = MAX_WAY.default
    max_query: int = MAX_QUERY.default
    max_support: int = MAX_SUPPORT.default
    max_shot_counted: int = 100  # images of one class that count towards the size of the support set
    max_concept: int = 392  # classes of the largest concept that a task may be sampled from
    least_noise: float = float(np.log(0.5))
    most_noise: float = float(np.log(2.0))


META_DATASET = VariableLimits()


def sample_variable(
    image_class_ids: np.ndarray,
    class_ids: np.ndarray,
    n_tasks: int,
    seed: int | np.random.SeedSequence | np.random.Generator,
    limits: VariableLimits = META_DATASET,
    image_ids: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    concepts: np.ndarray | None = None,
    two_levels: bool = False,
) -> Tasks:
    """Tasks over `class_ids`, padded where ways, shots and queries vary.

    image_class_ids  class of every image (N,); image_ids names those images, 0..N-1 if it is None.
    groups           (N,) group of every image. A group then counts as one image, and a task takes one of its images
                     at most; a group of several classes counts for that of its first image.
    concepts         (V, C) which of class_ids each concept holds: the classes of a task are from one concept, each
                     eligible one equally likely. The task has all of its classes, max_way of them at most, or with
                     two_levels a uniform number of them. Without, classes and their number are uniform.
    Classes with fewer than two images can give no support and query and are excluded.
    """
    image_class_ids = np.asarray(image_class_ids)
    image_ids = np.arange(len(image_class_ids)) if image_ids is None else np.asarray(image_ids)
    if not (2 <= limits.min_way <= limits.max_way):
        raise BadInput(f"min_way must be at least 2 and at most max_way ({limits.max_way}). Got {limits.min_way}.")
    N_TASKS.check(n_tasks)
    _check_room(
        n_tasks * (limits.max_support + limits.max_way * limits.max_query)
    )  # before the work, if it is hopeless
    images_of = _images_by_class(image_class_ids, class_ids, image_ids, groups)
    usable = np.array(sorted(images_of), dtype=np.int64)
    if len(usable) < limits.min_way:
        raise BadInput(
            f"Variable tasks need at least {limits.min_way} classes with two images or more"
            f"{'' if groups is None else ' that share no group (copies of a picture, frames of a video)'}. "
            f"Got {len(usable)}. Pick another split or lower min_way."
        )
    eligible = [usable] if concepts is None else _eligible(concepts, class_ids, usable, limits)
    if not eligible:
        raise BadInput(
            f"No concept of the taxonomy has {limits.min_way} to {limits.max_concept} classes with two images or more. "
            "Lower min_way, pick another split, or draw without the hierarchy (--no-follow-hierarchy)."
        )
    whole_concept = concepts is not None and not two_levels
    rng = np.random.default_rng(seed)
    parts = [
        _draw_task(rng, _draw_classes(rng, eligible, whole_concept, limits), images_of, limits) for _ in range(n_tasks)
    ]
    n_way = max(len(classes) for classes, _, _ in parts)
    n_shot = max(len(row) for _, support, _ in parts for row in support)
    n_query = max(len(row) for _, _, query in parts for row in query)
    _check_room(n_tasks * n_way * (n_shot + n_query))  # padded to the largest task
    tasks = Tasks(
        np.full((n_tasks, n_way), PAD), np.full((n_tasks, n_way, n_shot), PAD), np.full((n_tasks, n_way, n_query), PAD)
    )
    for t, (classes, support, query) in enumerate(parts):
        tasks.class_ids[t, : len(classes)] = classes
        for w, (of_support, of_query) in enumerate(zip(support, query, strict=True)):
            tasks.support[t, w, : len(of_support)] = of_support
            tasks.query[t, w, : len(of_query)] = of_query
    if groups is not None:
        for side in (tasks.support, tasks.query):
            _vary(side, rng, image_ids, image_class_ids, groups)
    return tasks


def _images_by_class(
    image_class_ids: np.ndarray, class_ids: np.ndarray, image_ids: np.ndarray, groups: np.ndarray | None
) -> dict[int, np.ndarray]:
    """image_ids of every class that has two or more, one per group where there are groups."""
    first = np.arange(len(image_ids))
    if groups is not None:
        first = np.flatnonzero(np.isin(image_class_ids, class_ids))
        first = first[np.unique(groups[first], return_index=True)[1]]
    order = first[np.argsort(image_class_ids[first], kind="stable")]
    bounds = np.searchsorted(image_class_ids[order], np.stack([class_ids, np.asarray(class_ids) + 1]))
    return {int(c): image_ids[order[a:b]] for c, a, b in zip(class_ids, *bounds, strict=True) if b - a >= 2}


def _eligible(
    concepts: np.ndarray, class_ids: np.ndarray, usable: np.ndarray, limits: VariableLimits
) -> list[np.ndarray]:
    """The usable classes of every concept that has enough of them and not too many."""
    held = np.asarray(concepts, dtype=bool) & np.isin(class_ids, usable)
    sizes = held.sum(axis=1)
    fits = (sizes >= limits.min_way) & (sizes <= limits.max_concept)
    return [np.asarray(class_ids)[row] for row in held[fits]]


def _vary(
    images: np.ndarray, rng: np.random.Generator, image_ids: np.ndarray, image_class_ids: np.ndarray, groups: np.ndarray
) -> None:
    """Puts in the place of each group's first image any of its images of the same class, equally likely."""
    _, alike = np.unique(np.stack([groups, image_class_ids]), axis=1, return_inverse=True)
    order = np.argsort(alike, kind="stable")
    counts = np.bincount(alike)
    starts = np.cumsum(counts) - counts
    present = images != PAD
    sorter = np.argsort(image_ids)
    pair = alike[sorter[np.searchsorted(image_ids, images[present], sorter=sorter)]]
    images[present] = image_ids[order[starts[pair] + rng.integers(0, counts[pair])]]


def shots_and_queries(rng: np.random.Generator, n_images: np.ndarray, limits: VariableLimits) -> tuple[np.ndarray, int]:
    """Shots of every class (W,) and queries per class, from the classes' image counts (W,)."""
    n_query = int(min(limits.max_query, n_images.min() // 2))
    n_support = n_images - n_query
    beta = 1.0 - rng.random()  # uniform in (0, 1]
    size = min(limits.max_support, int(np.ceil(beta * np.minimum(limits.max_shot_counted, n_support)).sum()))
    share = np.exp(rng.uniform(limits.least_noise, limits.most_noise, len(n_images))) * n_images
    share = share / share.sum()
    shots = np.floor(share * max(0, size - len(n_images))).astype(np.int64) + 1
    return np.minimum(shots, n_support), n_query


def _check_room(n_images: int) -> None:
    if n_images > MAX_IMAGES:
        raise BadInput(
            f"Testbed too large: up to {n_images:,} images, limit {MAX_IMAGES:,}. "
            "Lower n_tasks, max_way or max_support."
        )


def _draw_classes(
    rng: np.random.Generator, eligible: list[np.ndarray], is_complete: bool, limits: VariableLimits
) -> np.ndarray:
    """Classes of one of the eligible sets: all of them where `whole`, else a uniform number; max_way at most."""
    classes = eligible[int(rng.integers(len(eligible)))] if len(eligible) > 1 else eligible[0]
    most = min(limits.max_way, len(classes))
    n_way = most if is_complete else int(rng.integers(limits.min_way, most + 1))
    return rng.choice(classes, n_way, replace=False)


def _draw_task(
    rng: np.random.Generator, classes: np.ndarray, images_of: dict[int, np.ndarray], limits: VariableLimits
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Classes, and per class its support and query image_ids."""
    n_images = np.array([len(images_of[int(c)]) for c in classes])
    shots, n_query = shots_and_queries(rng, n_images, limits)
    support, query = [], []
    for class_id, n_shot in zip(classes, shots, strict=True):
        sampled = rng.choice(images_of[int(class_id)], n_shot + n_query, replace=False)
        support.append(sampled[:n_shot])
        query.append(sampled[n_shot:])
    return classes, support, query


def _sample(pool: Pool, n_tasks: int, seed: int, follow_hierarchy: bool = False, **limits: int) -> Tasks:
    image_class_ids, image_ids, groups = _images(pool)
    return sample_variable(
        image_class_ids,
        pool.class_ids,
        n_tasks,
        SEED.check(seed),
        VariableLimits(**limits),
        image_ids,
        groups,
        pool.concepts if follow_hierarchy else None,
        pool.two_levels,
    )


def _images(pool: Pool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Class, image_id and group of every image that may be sampled."""
    assert pool.image_class_ids is not None  # it is among the needs
    image_ids = np.flatnonzero(pool.image_class_ids != PAD)
    return pool.image_class_ids[image_ids], image_ids, None if pool.groups is None else pool.groups[image_ids]


def _excluded(pool: Pool, follow_hierarchy: bool = False, **limits: int) -> dict[int, str]:
    """The classes that are in no eligible concept, each with a sentence that says why."""
    if not follow_hierarchy or pool.concepts is None:
        return {}
    image_class_ids, image_ids, groups = _images(pool)
    usable = np.array(sorted(_images_by_class(image_class_ids, pool.class_ids, image_ids, groups)), dtype=np.int64)
    bounds = VariableLimits(**limits)
    eligible = _eligible(pool.concepts, pool.class_ids, usable, bounds)
    names = {int(c): repr(str(pool.class_names[c])) if pool.class_names else str(c) for c in pool.class_ids}
    rule = f"is in no concept of {bounds.min_way} to {bounds.max_concept} classes with two images or more."
    outside = np.setdiff1d(pool.class_ids, np.concatenate(eligible) if eligible else [])
    return {int(c): f"Class {names[int(c)]} {rule}" for c in outside}


SAMPLER = Sampler(
    "variable",
    "Variable",
    "Ways and shots vary from task to task (Meta-Dataset).",
    _sample,
    (MIN_WAY, MAX_WAY, MAX_QUERY, MAX_SUPPORT, FOLLOW),
    needs=("images",),
    needs_if={FOLLOW.name: "concepts"},
    samples_images=True,
    order=2,
    excluded=_excluded,
)
