"""All classes of a dataset as one tree, each class once."""

from __future__ import annotations

import numpy as np

from fsviz.errors import FsvizError
from fsviz.records import PAD, Dataset
from fsviz.records.graphs import Hierarchy
from fsviz.taxonomy.dag import collapse, split_dag

NEARLY_ALL = 0.8


def class_hierarchy(dataset: Dataset) -> Hierarchy:
    """The classes below their taxonomy, or below their split if there is no taxonomy that spans them.

    A taxonomy may give a node several parents: it stands below one of them (`Dag.tree_parent`), so that every class
    stands once. Concepts that hold no class then are excluded.
    """
    try:
        dag = collapse(split_dag(dataset, "all"))
    except FsvizError:  # no taxonomy, or one that leaves classes out: the splits still say something
        return _split_hierarchy(dataset)
    split = dataset.classes["split"].to_numpy()
    class_name = dataset.classes["class_name"].to_numpy()
    n_classes = np.zeros(len(dag), dtype=int)
    below: list[set[str]] = [set() for _ in dag.nodes]
    labels = [dataset.node_names.get(node, node) for node in dag.nodes]
    for class_id, node in enumerate(dag.class_nodes):
        n_classes[node] += 1
        below[node].add(split[class_id])
        labels[node] = class_name[class_id]
    for node in range(len(dag) - 1, 0, -1):  # children stand behind their parents
        parent = dag.tree_parent[node]
        n_classes[parent] += n_classes[node]
        below[parent] |= below[node]
    class_ids = np.full(len(dag), PAD)
    class_ids[dag.class_nodes] = np.arange(len(dag.class_nodes))
    is_class = class_ids != PAD
    # A group that holds nearly all of its parent ("physical entity" in "entity") says nothing: its children move up.
    parents = dag.tree_parent.copy()
    is_kept = np.ones(len(dag), dtype=bool)
    for node in range(1, len(dag)):
        if not is_kept[parents[node]]:
            parents[node] = parents[parents[node]]
        is_kept[node] = is_class[node] or 0 < n_classes[node] < NEARLY_ALL * n_classes[parents[node]]
    return Hierarchy(
        ids=tuple(dag.nodes[i] for i in np.flatnonzero(is_kept)),
        labels=tuple(labels[i] for i in np.flatnonzero(is_kept)),
        parents=(None, *(dag.nodes[parents[i]] for i in np.flatnonzero(is_kept)[1:])),
        n_classes=tuple(n_classes[is_kept].tolist()),
        split=tuple(next(iter(below[i])) if len(below[i]) == 1 else "mixed" for i in np.flatnonzero(is_kept)),
        class_ids=tuple(class_ids[is_kept].tolist()),
    )


def _split_hierarchy(dataset: Dataset) -> Hierarchy:
    class_name, split = dataset.classes["class_name"].tolist(), dataset.classes["split"].tolist()
    groups = list(dict.fromkeys(split))
    return Hierarchy(
        ids=("root", *(f"split {g}" for g in groups), *(f"class {i}" for i in range(len(class_name)))),
        labels=(dataset.title, *groups, *class_name),
        parents=(None, *("root" for _ in groups), *(f"split {s}" for s in split)),
        n_classes=(len(class_name), *(split.count(g) for g in groups), *(1 for _ in class_name)),
        split=(groups[0] if len(groups) == 1 else "mixed", *groups, *split),
        class_ids=(PAD, *(PAD for _ in groups), *range(len(class_name))),
    )
