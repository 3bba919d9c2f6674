"""Superclasses of the classes of a dataset, and how a split divides them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fsviz.errors import FsvizError, Missing
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.taxonomy.dag import Dag, collapse, span


def spanning(dataset: Dataset, class_ids: np.ndarray, mode: str = "shortest_path") -> Dag:
    """The part of the taxonomy above these classes."""
    if dataset.taxonomy is None:
        raise Missing(f"{dataset.title} has no taxonomy, so its classes have no superclasses.")
    nodes = dataset.classes["node"].astype(str).to_numpy()[class_ids]
    if (nodes == "").any():
        raise Missing(f"Some classes of {dataset.title} have no place in its taxonomy.")
    return span(dataset.taxonomy, nodes.tolist(), dataset.class_weights()[class_ids], mode, dataset.node_names)


def superclasses(dataset: Dataset, class_ids: np.ndarray, most: int = 0, n_groups: int = 0) -> list[str]:
    """The superclass of every class, by name: from the root down, the largest concept is replaced by those below it,
    until none has more than `most` classes, or until there are `n_groups`. Concepts right above classes stay whole."""
    dag = collapse(spanning(dataset, class_ids))
    parents = dag.tree_parent
    children: dict[int, list[int]] = {}
    for node in np.flatnonzero(dag.holds).tolist():
        children.setdefault(int(parents[node]), []).append(node)
    at, under = dag.class_nodes, dag.held
    groups = {0: under[0]}
    while True:
        open_groups = [g for g in groups if any(under[child].sum() > 1 for child in children.get(g, ()))]
        largest = max(open_groups, key=lambda g: groups[g].sum(), default=None)
        if largest is None or (most and groups[largest].sum() <= most) or (n_groups and len(groups) >= n_groups):
            break
        own = groups.pop(largest)
        rest = own.copy()
        for child in children[largest]:
            groups[child] = own & under[child]
            rest &= ~under[child]
        if rest.any():  # a class at the concept itself
            groups[-1 - largest] = rest
    names = [""] * len(at)
    for group, inside in groups.items():
        node = group if group >= 0 else -1 - group
        for position in np.flatnonzero(inside):
            names[position] = dag.names[node]
    return names


@dataclass(frozen=True)
class SuperclassShare:
    """The concept that tells a side from the rest: `n` of its `of` classes are below it, `n_rest` of `of_rest`."""

    side: str
    concept: str
    n: int
    of: int
    n_rest: int
    of_rest: int


def superclass_shares(dataset: Dataset, split: ClassSplit) -> list[SuperclassShare]:
    """Of train and of test, the concept whose share is the most above that among the other classes, if there is one;
    [] without a taxonomy. Val and test classes are sampled from one side in turn, so val says nothing more."""
    try:
        dag = collapse(spanning(dataset, split.class_ids))
    except FsvizError:
        return []
    below = dag.held
    sizes = below.sum(axis=1)
    usable = np.flatnonzero((sizes >= _smallest(split)) & (sizes < len(split.names)))
    if not len(usable):
        return []
    shares = []
    for number, side in ((0, "train"), (2, "test")):
        here = split.sides == number
        inside, outside = below[usable][:, here], below[usable][:, ~here]
        above = inside.mean(axis=1) - outside.mean(axis=1)
        best = int(np.argmax(above))
        if above[best] <= 0:
            continue
        counts = (int(inside[best].sum()), int(here.sum()), int(outside[best].sum()), int((~here).sum()))
        shares.append(SuperclassShare(side, dag.names[usable[best]], *counts))
    return shares


def groups_of(dataset: Dataset, split: ClassSplit, n_groups: int = 8) -> list[str]:
    """The superclass of every class of a split, "others" for those of small ones."""
    groups = superclasses(dataset, split.class_ids, n_groups=n_groups)
    return [name if groups.count(name) >= _smallest(split) else "others" for name in groups]


def _smallest(split: ClassSplit) -> int:
    """Smallest number of classes of a superclass with a name: of few classes, two are many."""
    return 3 if len(split.names) >= 30 else 2


def superclass_table(dataset: Dataset, split: ClassSplit, n_groups: int = 8) -> pd.DataFrame:
    """Classes of every superclass (rows, the largest first) on every side (columns)."""
    groups = groups_of(dataset, split, n_groups)
    sides = np.array(SIDES, dtype=object)[split.sides]
    table = pd.crosstab(pd.Series(groups, name="superclass"), pd.Series(sides, name="side"))
    table = table.reindex(columns=list(SIDES), fill_value=0)
    return table.loc[table.sum(axis=1).sort_values(ascending=False, kind="stable").index]
