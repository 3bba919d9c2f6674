"""What a dataset is, at a glance: its classes as a hierarchy and the sizes of its classes."""

from __future__ import annotations

import numpy as np

from fsviz.errors import FsvizError
from fsviz.records import Dataset, Hierarchy, SizeHistogram
from fsviz.taxonomy.dag import collapse, split_dag

NEARLY_ALL = 0.8


def class_hierarchy(dataset: Dataset) -> Hierarchy:
    """The classes below their taxonomy, or below their split where there is no taxonomy that spans them.

    A taxonomy may give a node several parents: the first one reached breadth-first from the root holds it here, so
    that every class stands once.
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
        parent = dag.first_parent[node]
        n_classes[parent] += n_classes[node]
        below[parent] |= below[node]
    is_class = np.zeros(len(dag), dtype=bool)
    is_class[dag.class_nodes] = True
    # A group that holds nearly all of its parent ("physical entity" in "entity") says nothing: its children move up.
    parents = dag.first_parent.copy()
    kept = np.ones(len(dag), dtype=bool)
    for node in range(1, len(dag)):
        if not kept[parents[node]]:
            parents[node] = parents[parents[node]]
        kept[node] = is_class[node] or n_classes[node] < NEARLY_ALL * n_classes[parents[node]]
    return Hierarchy(
        ids=tuple(dag.nodes[i] for i in np.flatnonzero(kept)),
        labels=tuple(labels[i] for i in np.flatnonzero(kept)),
        parents=(None, *(dag.nodes[parents[i]] for i in np.flatnonzero(kept)[1:])),
        n_classes=tuple(n_classes[kept].tolist()),
        split=tuple(next(iter(below[i])) if len(below[i]) == 1 else "mixed" for i in np.flatnonzero(kept)),
    )


def _split_hierarchy(dataset: Dataset) -> Hierarchy:
    class_name, split = dataset.classes["class_name"].tolist(), dataset.classes["split"].tolist()
    groups = list(dict.fromkeys(split))
    return Hierarchy(
        ids=("root", *(f"split {g}" for g in groups), *(f"class {i}" for i in range(len(class_name)))),
        labels=(dataset.title, *groups, *class_name),
        parents=(None, *("root" for _ in groups), *(f"split {s}" for s in split)),
        n_classes=(len(class_name), *(split.count(g) for g in groups), *(1 for _ in class_name)),
        split=("mixed" if len(groups) > 1 else groups[0], *groups, *split),
    )


def class_sizes(dataset: Dataset, n_bins: int = 24) -> SizeHistogram | None:
    """How many classes have how many images, by split; None where the counts are unknown."""
    counts = dataset.classes["n_images"]
    if counts.isna().any() or not len(counts):
        return None
    sizes = counts.to_numpy(dtype=float)
    # Sizes over two decades are only readable on a logarithmic axis.
    wide = sizes.min() > 0 and sizes.max() / sizes.min() > 100
    if sizes.min() == sizes.max():
        edges = np.array([sizes[0] - 0.5, sizes[0] + 0.5])
    elif wide:
        edges = np.geomspace(sizes.min(), sizes.max() * 1.0001, n_bins + 1)
    else:
        edges = np.linspace(sizes.min(), sizes.max() + 1, min(n_bins, int(np.ptp(sizes)) + 1) + 1)
    split = dataset.classes["split"].to_numpy()
    bars = {name: np.histogram(sizes[split == name], edges)[0] for name in dict.fromkeys(split)}
    return SizeHistogram(edges, bars, float(np.median(sizes)), wide)


def sample_image_ids(dataset: Dataset, n: int, seed: int = 0) -> np.ndarray:
    """n images of different classes where there are that many; always the same for one seed."""
    class_ids = dataset.image_class_ids()
    order = np.random.default_rng(seed).permutation(len(class_ids))
    _, first = np.unique(class_ids[order], return_index=True)  # one image of every class, classes in random order
    chosen = order[np.sort(first)]
    return chosen[:n]
