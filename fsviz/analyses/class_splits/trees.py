"""Ward's tree of class features, compared with the tree of a taxonomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fsviz import features, taxonomy
from fsviz.analyses.class_splits.search import ClassFeatures, class_features, positions_of
from fsviz.errors import FsvizError, Missing
from fsviz.features.backbones import title_of
from fsviz.records import PAD, Dataset
from fsviz.records.graphs import ClassTree, Tanglegram
from fsviz.settings import Setting
from fsviz.splits import trees
from fsviz.taxonomy.superclasses import spanning

TREE = Setting("tree", "Tree on the left", "Classes by the features of a backbone, or by the taxonomy.", "choice", "")
TAXONOMY = "taxonomy"  # the name of its tree, next to those of backbones


def class_tree(dataset: Dataset, which: str, class_ids: np.ndarray, classes: ClassFeatures | None = None) -> ClassTree:
    """The tree of these classes by the taxonomy, or by Ward's clustering of a backbone's features (given or loaded)."""
    if which == TAXONOMY:
        return replace(_taxonomy_tree(dataset, class_ids), title="the taxonomy")
    classes = classes if classes is not None and classes.backbone == which else class_features(dataset, which)
    position = positions_of(classes, class_ids)
    tree = trees.ward_tree(classes.points[position], [classes.names[p] for p in position])
    return replace(tree, title=title_of(classes.backbone))


def hops(dataset: Dataset, which: str, class_ids: np.ndarray, classes: ClassFeatures | None = None) -> np.ndarray:
    """Edges between every two of these classes, in the taxonomy with all its paths or in a backbone's tree."""
    if which == TAXONOMY:
        dag = spanning(dataset, class_ids, "all_paths")
        return trees.graph_hops(dag.parents, dag.children, dag.class_nodes, len(dag))
    return trees.tree_hops(class_tree(dataset, which, class_ids, classes))


def known_trees(dataset: Dataset) -> list[str]:
    """Names of the trees of a dataset: its backbones, and the taxonomy if there is one."""
    names = features.available(dataset)
    try:
        spanning(dataset, np.arange(dataset.n_classes))
    except FsvizError:
        return names
    return [*names, TAXONOMY]


def tanglegram(dataset: Dataset, left: str, right: str, class_ids: np.ndarray) -> Tanglegram:
    """Two trees of these classes facing each other."""
    return trees.tanglegram(class_tree(dataset, left, class_ids), class_tree(dataset, right, class_ids))


def hop_table(dataset: Dataset, which: Sequence[str], class_ids: np.ndarray) -> pd.DataFrame:
    """Every two of these trees (table 3): columns first, second, hops, normalised, chance."""
    if len(which) < 2:
        raise Missing(
            f"A comparison needs two trees; {dataset.title} has {len(which)}: one per backbone and taxonomy. "
            "Extract features with another backbone, or add a taxonomy."
        )
    between = {name: hops(dataset, name, class_ids) for name in which}
    rows = []
    for i, first in enumerate(which):
        for second in which[i + 1 :]:
            distance = trees.hop_distance(between[first], between[second])
            rows.append({"first": first, "second": second, **vars(distance)})
    return pd.DataFrame(rows)


def all_with_features(dataset: Dataset, which: Sequence[str]) -> np.ndarray:
    """class_ids of the classes that all of these trees contain."""
    class_ids = np.arange(dataset.n_classes)
    for name in which:
        if name != TAXONOMY:
            class_ids = np.intersect1d(class_ids, class_features(dataset, name).class_ids)
    return class_ids


def _taxonomy_tree(dataset: Dataset, class_ids: np.ndarray) -> ClassTree:
    """One parent per node (`Dag.tree_parent`), and a leaf of its own for every class."""
    dag = taxonomy.collapse(spanning(dataset, class_ids))
    names = dataset.distinct_names(class_ids)
    holds = dag.holds  # the others would be leaves without a class
    place = np.append(np.cumsum(holds) - 1, PAD)
    above = place[dag.tree_parent[holds]]
    parents, labels = above.tolist(), [name for name, held in zip(dag.names, holds) if held]
    has_child = np.bincount(np.maximum(above, 0), minlength=len(above)) > (np.arange(len(above)) == 0)
    leaves: list[int] = []
    for name, node in zip(names, place[dag.class_nodes].tolist(), strict=True):
        if has_child[node] or node in leaves:
            parents.append(node)
            labels.append(name)
            leaves.append(len(parents) - 1)
        else:
            labels[node] = name
            leaves.append(node)
    shared = [node for node in leaves[: len(above)] if node in parents]  # a leaf that a later class was put below
    for node in dict.fromkeys(shared):
        parents.append(node)
        labels.append(labels[node])
        leaves[leaves.index(node)] = len(parents) - 1
    heights = np.zeros(len(parents))
    for leaf in leaves:
        node, height = leaf, 0
        while parents[node] != PAD:
            node, height = parents[node], height + 1
            heights[node] = max(heights[node], height)
    return ClassTree(np.array(parents), heights, np.array(leaves), tuple(map(str, labels)))
