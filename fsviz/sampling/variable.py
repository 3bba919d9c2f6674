"""Tasks of variable way and shot, as Meta-Dataset draws them (Triantafillou et al. 2020, section 3.2).

Per task: the number of classes is uniform; queries are as many for every class, at most half of the smallest class;
the size of the support set depends on how many images there are; shots follow class sizes, made uneven by noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks


@dataclass(frozen=True)
class VariableLimits:
    """The sampler's constants; the defaults are Meta-Dataset's."""

    min_way: int = 5
    max_way: int = 50
    max_query: int = 10
    max_support: int = 500
    max_shot_counted: int = 100  # images of one class that count towards the size of the support set
    least_noise: float = float(np.log(0.5))
    most_noise: float = float(np.log(2.0))


def sample_variable(
    image_class_ids: np.ndarray,
    class_ids: np.ndarray,
    n_tasks: int,
    seed: int | np.random.SeedSequence | np.random.Generator,
    limits: VariableLimits = VariableLimits(),  # noqa: B008 - frozen
    image_ids: np.ndarray | None = None,
) -> Tasks:
    """Tasks over `class_ids`, padded where ways, shots and queries vary.

    image_class_ids  class of every image (N,); image_ids names those images, 0..N-1 where it is None.
    Classes with fewer than two images can give no support and query and are left out.
    """
    image_class_ids = np.asarray(image_class_ids)
    image_ids = np.arange(len(image_class_ids)) if image_ids is None else np.asarray(image_ids)
    if not (2 <= limits.min_way <= limits.max_way):
        raise BadInput(f"min_way must be at least 2 and at most max_way ({limits.max_way}). Got {limits.min_way}.")
    if n_tasks < 1:
        raise BadInput(f"n_tasks must be at least 1. Got {n_tasks}.")
    order = np.argsort(image_class_ids, kind="stable")
    bounds = np.searchsorted(image_class_ids[order], np.stack([class_ids, np.asarray(class_ids) + 1]))
    images_of = {int(c): image_ids[order[a:b]] for c, a, b in zip(class_ids, *bounds, strict=True) if b - a >= 2}
    usable = np.array(sorted(images_of), dtype=np.int64)
    if len(usable) < limits.min_way:
        raise BadInput(
            f"Variable tasks need at least {limits.min_way} classes with two images or more. "
            f"Got {len(usable)}. Pick another split or lower min_way."
        )
    rng = np.random.default_rng(seed)
    drawn = [_draw_task(rng, usable, images_of, limits) for _ in range(n_tasks)]
    n_way = max(len(classes) for classes, _, _ in drawn)
    n_shot = max(len(row) for _, support, _ in drawn for row in support)
    n_query = max(len(row) for _, _, query in drawn for row in query)
    tasks = Tasks(
        np.full((n_tasks, n_way), PAD), np.full((n_tasks, n_way, n_shot), PAD), np.full((n_tasks, n_way, n_query), PAD)
    )
    for t, (classes, support, query) in enumerate(drawn):
        tasks.class_ids[t, : len(classes)] = classes
        for w, (of_support, of_query) in enumerate(zip(support, query, strict=True)):
            tasks.support[t, w, : len(of_support)] = of_support
            tasks.query[t, w, : len(of_query)] = of_query
    return tasks


def shots_and_queries(rng: np.random.Generator, n_images: np.ndarray, limits: VariableLimits) -> tuple[np.ndarray, int]:
    """Shots of every class (W,) and queries a class, from the classes' image counts (W,)."""
    n_query = int(min(limits.max_query, n_images.min() // 2))
    left = n_images - n_query
    beta = 1.0 - rng.random()  # uniform in (0, 1]
    size = min(limits.max_support, int(np.ceil(beta * np.minimum(limits.max_shot_counted, left)).sum()))
    share = np.exp(rng.uniform(limits.least_noise, limits.most_noise, len(n_images))) * n_images
    share = share / share.sum()
    shots = np.floor(share * max(0, size - len(n_images))).astype(np.int64) + 1
    return np.minimum(shots, left), n_query


def _draw_task(
    rng: np.random.Generator, usable: np.ndarray, images_of: dict[int, np.ndarray], limits: VariableLimits
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Classes, and per class its support and query image_ids."""
    n_way = int(rng.integers(limits.min_way, min(limits.max_way, len(usable)) + 1))
    classes = rng.choice(usable, n_way, replace=False)
    n_images = np.array([len(images_of[int(c)]) for c in classes])
    shots, n_query = shots_and_queries(rng, n_images, limits)
    support, query = [], []
    for class_id, n_shot in zip(classes, shots, strict=True):
        drawn = rng.choice(images_of[int(class_id)], n_shot + n_query, replace=False)
        support.append(drawn[:n_shot])
        query.append(drawn[n_shot:])
    return classes, support, query
