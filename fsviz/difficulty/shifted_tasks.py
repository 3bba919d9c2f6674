"""Tasks with and without a chosen attribute shift (Basu et al. 2023, appendix D), for any attribute of any dataset.

Queries of a class all belong to one group of the attribute: a context, a style, the low or the high third of a number.
Without shift the support images come from the same group; with shift from the others, for a number from the opposite
third. Both tasks of a pair share classes and queries, so that any difference in accuracy is due to the support.

Each class may be shifted on its own: its support may then resemble the queries of other classes. Or all classes of a
task are shifted alike: the queries of all classes share one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsviz.difficulty.attribute_gaps import Attribute
from fsviz.errors import BadInput, UnknownName
from fsviz.records import Tasks


@dataclass(frozen=True)
class CuratedPair:
    """The same classes and queries, once without and once with a shift; groups (T, W) name the queries' group."""

    without_shift: Tasks
    with_shift: Tasks
    groups: np.ndarray
    group_names: tuple[str, ...]


def attribute_groups(attribute: Attribute) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group of every image (N,), -1 if it has none, and the groups' names. Numbers give low, middle and high."""
    if not attribute.is_numeric:
        return attribute.codes, attribute.values
    low, high = np.nanquantile(attribute.numbers, [1 / 3, 2 / 3])
    groups = np.where(attribute.numbers <= low, 0, np.where(attribute.numbers >= high, 2, 1))
    names = (f"low {attribute.name}", f"middle {attribute.name}", f"high {attribute.name}")
    return np.where(np.isfinite(attribute.numbers), groups, -1), names


def sample_curated(
    attribute: Attribute,
    image_class_ids: np.ndarray,
    class_ids: np.ndarray,
    n_way: int,
    n_shot: int,
    n_query: int,
    n_tasks: int,
    seed: int,
    query_group: str | None = None,
    alike: bool = False,
) -> CuratedPair:
    """Pairs of tasks without and with a shift of one attribute.

    image_class_ids  class of every image_id (N,); class_ids the classes to draw from.
    query_group      the group of all queries (a value of the attribute, or "low ..." / "high ..."); None samples one
                     for every class of every task, among those that have enough images.
    alike            whether all classes of a task share the group of their queries
    """
    groups, names = attribute_groups(attribute)
    if query_group is not None and query_group not in names:
        raise UnknownName(f"group of {attribute.name}", query_group, names)
    if min(n_shot, n_query, n_tasks) < 1 or n_way < 2:
        raise BadInput("n_shot, n_query and n_tasks must be at least 1 and n_way at least 2.")
    opposites = _opposites(attribute, len(names))
    allowed = [names.index(query_group)] if query_group is not None else _query_groups(attribute, len(names))
    image_class_ids = np.asarray(image_class_ids)
    feasible: dict[int, list[tuple[int, np.ndarray, np.ndarray]]] = {}  # class -> (group, its images, the others')
    for class_id in class_ids:
        image_ids = np.flatnonzero(image_class_ids == class_id)
        pairs = (
            (g, image_ids[groups[image_ids] == g], image_ids[np.isin(groups[image_ids], opposites[g])]) for g in allowed
        )
        fits = [pair for pair in pairs if len(pair[1]) >= n_shot + n_query and len(pair[2]) >= n_shot]
        if fits:
            feasible[int(class_id)] = fits
    usable: dict[int | None, list[int]] = {None: sorted(feasible)}  # by the group of a task; None: each class its own
    if alike:
        usable = {g: [c for c in sorted(feasible) if any(pair[0] == g for pair in feasible[c])] for g in allowed}
    most = max(map(len, usable.values()))
    if most < n_way:
        raise BadInput(
            f"A shift of {attribute.name!r} needs {n_way} classes with {n_shot + n_query} images of one value"
            f"{', the same for all,' if alike else ''} and {n_shot} of others. Got {most} such classes. Lower n_query "
            "or n_shot, or take another attribute."
        )
    rng = np.random.default_rng(np.random.SeedSequence((seed, 7)))
    shared = [g for g in usable if len(usable[g]) >= n_way]
    shape = (n_tasks, n_way)
    classes, picked = np.empty(shape, np.int64), np.empty(shape, np.int64)
    query, same, shifted = (np.empty((*shape, n), np.int64) for n in (n_query, n_shot, n_shot))
    for t in range(n_tasks):
        group = shared[rng.integers(len(shared))] if alike else None
        classes[t] = rng.choice(usable[group], n_way, replace=False)
        for w, class_id in enumerate(classes[t]):
            fits = [pair for pair in feasible[int(class_id)] if group in (None, pair[0])]
            picked[t, w], inside, outside = fits[rng.integers(len(fits))]
            inside = rng.permutation(inside)
            query[t, w] = inside[:n_query]
            same[t, w] = inside[n_query : n_query + n_shot]
            shifted[t, w] = rng.choice(outside, n_shot, replace=False)
    return CuratedPair(Tasks(classes, same, query), Tasks(classes, shifted, query), picked, names)


def sample_restricted(
    attribute: Attribute,
    image_class_ids: np.ndarray,
    class_ids: np.ndarray,
    n_way: int,
    n_shot: int,
    n_query: int,
    n_tasks: int,
    seed: int,
    query_groups: Sequence[str],
) -> Tasks:
    """Tasks whose queries all belong to some groups of an attribute; support images are sampled from all others.

    query_groups  one or more values of the attribute, or "low ...", "middle ...", "high ..." of a number
    After section 5.3.2 and appendix L of the paper: a search is then free to choose supports like the queries, or not.
    """
    groups, names = attribute_groups(attribute)
    for name in query_groups:
        if name not in names:
            raise UnknownName(f"value of {attribute.name}", name, names)
    if not query_groups:
        raise BadInput(f"Queries need at least one value of {attribute.name!r}. Got none. Choose some of its values.")
    if min(n_shot, n_query, n_tasks) < 1 or n_way < 2:
        raise BadInput("n_shot, n_query and n_tasks must be at least 1 and n_way at least 2.")
    image_class_ids = np.asarray(image_class_ids)
    fits = np.isin(groups, [names.index(name) for name in query_groups])
    images_of = {int(c): np.flatnonzero(image_class_ids == c) for c in class_ids}
    usable = np.array(
        [c for c, ids in images_of.items() if fits[ids].sum() >= n_query and len(ids) >= n_query + n_shot], np.int64
    )
    if len(usable) < n_way:
        raise BadInput(
            f"Queries of {attribute.name} {' or '.join(map(repr, query_groups))} need {n_way} classes with {n_query} "
            f"such images and {n_shot} more for the support. Got {len(usable)} such classes. Lower n_query, n_shot or "
            "n_way, or choose further values."
        )
    rng = np.random.default_rng(np.random.SeedSequence((seed, 8)))
    classes = usable[np.argsort(rng.random((n_tasks, len(usable))), axis=1)[:, :n_way]]
    query, support = (np.empty((n_tasks, n_way, n), np.int64) for n in (n_query, n_shot))
    for class_id in np.unique(classes):
        at, image_ids = np.nonzero(classes == class_id), images_of[int(class_id)]
        order = rng.random((len(at[0]), len(image_ids)))
        query_index = np.argsort(np.where(fits[image_ids], order, 2.0), axis=1)[:, :n_query]
        order = rng.random(order.shape)  # anew: what is left of the fitting images has the higher numbers above
        np.put_along_axis(order, query_index, 2.0, axis=1)
        query[at] = image_ids[query_index]
        support[at] = image_ids[np.argsort(order, axis=1)[:, :n_shot]]
    return Tasks(classes, support, query)


def _opposites(attribute: Attribute, n_groups: int) -> list[np.ndarray]:
    """Groups that count as shifted from each group."""
    if attribute.is_numeric:
        return [np.array([2]), np.array([0, 2]), np.array([0])]
    return [np.delete(np.arange(n_groups), g) for g in range(n_groups)]


def _query_groups(attribute: Attribute, n_groups: int) -> list[int]:
    return [0, 2] if attribute.is_numeric else list(range(n_groups))
