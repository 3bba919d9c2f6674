"""Shallow taxonomies, such as folders in folders: their few distances give groups of classes, not closeness."""

from __future__ import annotations

import numpy as np

from fsviz import evaluation, taxonomy
from fsviz.errors import FsvizError
from fsviz.records import PAD, Dataset, Tasks
from fsviz.taxonomy.superclasses import superclasses

MAX_VALUES, MAX_DEPTH = 12, 3  # different distances, and steps from the root to a class, of a shallow taxonomy


def groups_note(dataset: Dataset, split: str, distances: np.ndarray) -> str:
    """A sentence if the semantic distances (C, C) of a split only tell groups apart; "" otherwise."""
    values = distances[np.triu_indices(len(distances), 1)]
    n_values = len(np.unique(np.round(values, 6)))
    if n_values > MAX_VALUES or 10 * n_values > len(values) or not _is_shallow(dataset, split):
        return ""
    return (
        f"Only {n_values:,} different distances for {len(values):,} pairs: this taxonomy gives groups of classes, not "
        "closeness."
    )


def _is_shallow(dataset: Dataset, split: str) -> bool:
    try:
        dag = taxonomy.split_dag(dataset, split)
    except FsvizError:
        return False
    return bool(dag.depth[dag.class_nodes].max() <= MAX_DEPTH)


def composition(dataset: Dataset, tasks: Tasks) -> str:
    """The share of tasks inside one top group in each quarter by coarsity, as a sentence; "" for a deep taxonomy.

    Accuracy over coarsity then follows the groups that the quarters hold.
    """
    coarsity = tasks.measures.get("coarsity")
    split = dataset.split_of(tasks.class_ids)
    if coarsity is None or not _is_shallow(dataset, split):
        return ""
    class_ids = dataset.split_class_ids(split)
    codes = np.unique(superclasses(dataset, class_ids, n_groups=2), return_inverse=True)[1]
    if not 1 < codes.max() + 1 <= len(class_ids) / 2:  # all in one group, or each class a group
        return ""
    of_class = np.full(dataset.n_classes + 1, PAD)  # PAD is the last one
    of_class[class_ids] = codes
    groups = of_class[tasks.class_ids]
    inside = ((groups == groups[:, :1]) | (tasks.class_ids == PAD)).all(axis=1)
    quarters = evaluation.quantile_groups(coarsity)
    shares = [f"{inside[quarters == quarter].mean():.0%}" for quarter in (1, 2, 3, 4) if (quarters == quarter).any()]
    return f"Tasks inside one of the {codes.max() + 1} top groups, finest to coarsest quarter: {', '.join(shares)}."
