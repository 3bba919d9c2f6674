"""The concepts above the classes of a split, as sets of classes: what Meta-Dataset samples a task's classes from."""

from __future__ import annotations

import numpy as np

from fsviz.records import Dataset
from fsviz.taxonomy.dag import Dag, split_dag


def class_concepts(dataset: Dataset, split: str) -> tuple[np.ndarray, bool]:
    """Mask (V, C) of the classes of a split below each concept, and whether there are two levels; see `concepts`."""
    return concepts(split_dag(dataset, split, "all_paths"))


def concepts(dag: Dag) -> tuple[np.ndarray, bool]:
    """Mask (V, C) of the classes below each concept of a graph, and whether it has two levels.

    A concept is a node with children, from the lowest one that holds every class down. Concepts that hold the same
    classes are one: a node with a single child says nothing that its child does not. In a graph of two levels (a root,
    groups below it, and every class in a group, like Omniglot's alphabets) the concepts are the groups, without the
    root.
    """
    is_inner = np.bincount(dag.parents, minlength=len(dag)) > 0
    is_class = np.zeros(len(dag), dtype=bool)
    is_class[dag.class_nodes] = True
    two_levels = not (is_inner & is_class).any() and bool(((dag.parents == 0) != is_class[dag.children]).all())
    if two_levels:
        is_inner[0] = False
    else:
        is_inner &= _below_lowest(dag)
    return np.unique(dag.below[is_inner], axis=0), two_levels


def _below_lowest(dag: Dag) -> np.ndarray:
    """Whether a node (V,) is at or below a lowest one that holds every class; there may be several such."""
    holds_all = np.asarray(dag.below.all(axis=1))
    reached = holds_all.copy()
    reached[dag.parents[holds_all[dag.children]]] = False  # a node below it holds every class, too
    for parent, child in zip(dag.parents.tolist(), dag.children.tolist(), strict=True):  # parents before children
        reached[child] |= reached[parent]
    return reached
