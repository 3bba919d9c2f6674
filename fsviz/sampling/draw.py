"""Steps that samplers share: keeping different class sets, dealing images to tasks of classes, random streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, Setting

REPEATS = Setting(
    "repeats",
    "Keep duplicates",
    "Keep tasks whose classes came up before. Off: duplicates are dropped, as published; with many tasks "
    "this loses the common, most fine-grained class sets.",
    "flag",
    False,
    advanced=True,
)
MAX_IMAGES = 200_000_000  # of one testbed, counted with repetitions: 1.6 GB


def assign_images(
    tasks: Tasks,
    image_class_ids: np.ndarray,
    n_shot: int,
    n_query: int,
    seed: int,
    groups: np.ndarray | None = None,
    class_names: Sequence[str] | None = None,
) -> Tasks:
    """The same tasks with n_shot support and n_query query images per class.

    image_class_ids  (N,) class of every image_id
    groups           (N,) group of every image_id: no group has images on both sides of a task. None: every image is
                     a group of its own
    class_names      by class_id, for sentences
    Each class deals its images without replacement across the whole list of tasks and reshuffles when it runs out:
    images of a class are used equally often (up to one; with groups, as nearly as they allow), and support and query
    of a task share none.
    """
    n_shot, n_query = N_SHOT.check(n_shot), N_QUERY.check(n_query)
    SEED.check(seed)
    image_class_ids = np.asarray(image_class_ids, dtype=np.int64)
    class_ids = np.asarray(tasks.class_ids, dtype=np.int64)
    hand = n_shot + n_query
    n_classes = int(max(class_ids.max(initial=0), image_class_ids.max(initial=0))) + 1
    sizes = np.bincount(image_class_ids[image_class_ids >= 0], minlength=n_classes)
    used = np.unique(class_ids[class_ids != PAD])
    short = used[sizes[used] < hand]
    if len(short):
        raise BadInput(
            f"Class {int(short[0])} has {int(sizes[short[0]])} images; n_shot + n_query needs {hand}"
            f"{f' ({len(short) - 1} more classes have too few)' if len(short) > 1 else ''}. Lower n_shot or n_query."
        )
    if class_ids.size * hand > MAX_IMAGES:
        raise BadInput(
            f"Testbed too large: {class_ids.size * hand:,} images, limit {MAX_IMAGES:,}. "
            "Lower tasks, ways, shots or queries."
        )
    from fsviz.sampling import kernels

    if (image_class_ids[1:] >= image_class_ids[:-1]).all() and (image_class_ids[:1] >= 0).all():
        decks = np.arange(len(image_class_ids))  # already grouped: the common case, and some datasets are large
    else:
        decks = np.argsort(image_class_ids, kind="stable")[(image_class_ids < 0).sum() :]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    state = stream(seed, 2)
    if groups is None or len(np.unique(groups[decks])) == len(decks):
        image_ids = kernels.sample_images(class_ids, decks, starts, sizes, hand, state)
    else:
        of_group, pairs = np.unique(np.stack([groups, image_class_ids])[:, decks], axis=1, return_inverse=True)
        of_image = np.zeros(len(groups), dtype=np.int64)
        of_image[decks] = pairs
        image_ids, stuck = kernels.sample_images_by_group(
            class_ids, decks, starts, sizes, n_shot, n_query, of_image, of_group[0], np.bincount(pairs), state
        )
        if stuck >= 0:
            name = stuck if class_names is None else repr(str(class_names[stuck]))
            raise _cannot_divide(name, sizes[stuck], (of_group[1] == stuck).sum(), n_shot, n_query)
    return replace(tasks, support=image_ids[:, :, :n_shot].copy(), query=image_ids[:, :, n_shot:].copy())


def max_per_side(group_sizes: np.ndarray, n_other: int) -> int:
    """The most images that whole groups of these sizes give to one side of a task while n_other stay for the other."""
    sums = 1  # bit x is set where some of the groups have x images together
    for size in group_sizes.tolist():
        sums |= sums << size
    return (sums & ((1 << max(0, int(group_sizes.sum()) - n_other + 1)) - 1)).bit_length() - 1


def _cannot_divide(name: object, n_images: int, n_groups: int, n_shot: int, n_query: int) -> BadInput:
    held = "are all one group" if n_groups == 1 else f"are in {n_groups} groups"
    return BadInput(
        f"Class {name} has too few separate groups (duplicates, video frames) for {n_shot} + {n_query} images: its "
        f"{n_images} images {held}. Lower n_shot or n_query, skip the class, or use --no-keep-groups."
    )


def count_distinct(class_ids: np.ndarray) -> int:
    """Number of different sets of classes in a list of tasks."""
    from fsviz.sampling import kernels

    return len(kernels.first_of_each(np.sort(class_ids, axis=1)))


def keep_distinct(candidates: np.ndarray, n_tasks: int, state: np.ndarray) -> np.ndarray:
    """n_tasks of the sampled tasks (rows ascending): different class sets, chosen at random, in the order sampled.

    When the samples hold fewer different sets than requested (few classes, or a large alpha), all of them are kept and
    repeats fill the rest: their images will differ.
    """
    from fsviz.sampling import kernels

    first = kernels.first_of_each(candidates)
    if len(first) >= n_tasks:
        return candidates[first[kernels.choose(len(first), n_tasks, state)]]
    repeats = np.setdiff1d(np.arange(len(candidates)), first)
    fill = repeats[kernels.choose(len(repeats), n_tasks - len(first), state)]
    return candidates[np.sort(np.concatenate([first, fill]))]


def stream(seed: int, number: int) -> np.ndarray:
    """Four words for the generator of the kernels; each use of a seed has a stream with a number of its own."""
    return np.random.SeedSequence(entropy=int(seed), spawn_key=(number,)).generate_state(4, np.uint64)


def check_draw(n_classes: int, n_way: int, n_tasks: int, seed: int) -> None:
    """Refuses what cannot be sampled from so many classes."""
    N_WAY.check(n_way)
    N_TASKS.check(n_tasks)
    SEED.check(seed)
    if n_way > n_classes:
        raise BadInput(
            f"n_way must be at most {n_classes}, the number of classes. Got {n_way}. "
            "Lower n_way or choose another split."
        )
