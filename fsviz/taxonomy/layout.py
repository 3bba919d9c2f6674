"""Positions of the nodes of a taxonomy. Every node is below its tree parent; other edges cross."""

from __future__ import annotations

import numpy as np

from fsviz.taxonomy.dag import Dag


def class_order(dag: Dag) -> np.ndarray:
    """(C,) classes in the order in which a walk down the taxonomy meets them: relatives stand side by side."""
    rank = np.empty(len(dag), dtype=np.int64)
    rank[_walk(dag)] = np.arange(len(dag))
    return np.argsort(rank[dag.class_nodes], kind="stable")


def radial(dag: Dag, nodes: np.ndarray) -> np.ndarray:
    """(len(shown), 2) places with the root in the middle and the ends of branches evenly around a circle.

    The radius is the depth; ends lie on the outermost circle however deep they are, so that their names can be read.
    """
    across, slots, ends = _across(dag, nodes)
    angle = 2 * np.pi * across[nodes] / max(slots, 1)
    depth = dag.tree_depth[nodes]
    radius = np.where(ends[nodes], max(int(depth.max()), 1), depth).astype(float)
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)


def layered(dag: Dag, nodes: np.ndarray) -> np.ndarray:
    """(len(shown), 2) places with the root on the left, a column for each depth, ends of branches in the last one."""
    across, slots, ends = _across(dag, nodes)
    depth = dag.tree_depth[nodes]
    last = max(int(depth.max()), 1)
    column = np.where(ends[nodes], last, depth).astype(float)
    return np.stack([column, across[nodes] / max(slots - 1, 1) * last], axis=1)


def _across(dag: Dag, nodes: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Place of every shown node along the outer edge, the number of places, and which nodes are ends of branches.

    Ends take one place each, other nodes the middle of their ends. Concepts that hold no class, as all below them hangs
    below nearer ones, stand above what they lead to, a little to the side.
    """
    visible = np.zeros(len(dag), dtype=bool)
    visible[nodes] = True
    holds = dag.holds
    walk = [node for node in _walk(dag) if visible[node] and holds[node]]
    low, high = np.full(len(dag), np.inf), np.zeros(len(dag))
    slots = 0
    has_child = np.zeros(len(dag), dtype=bool)
    has_child[[dag.tree_parent[node] for node in walk if dag.tree_parent[node] >= 0]] = True
    for node in walk:
        if not has_child[node]:
            low[node] = high[node] = slots
            slots += 1
    for node in reversed(walk):  # children come after their parents in the walk
        parent = dag.tree_parent[node]
        if parent >= 0:
            low[parent], high[parent] = min(low[parent], low[node]), max(high[parent], high[node])
    across = (low + high) / 2
    empty = np.flatnonzero(visible & ~holds)
    for i, node in enumerate(empty[::-1].tolist()):
        children = dag.children[(dag.parents == node) & visible[dag.children]]
        middle = across[children].mean() if len(children) else across[_held_above(dag, node, holds)]
        across[node] = np.floor(2 * middle) / 2 + (i + 1) / (2 * len(empty) + 2)  # no two in one place
    return across, slots, visible & holds & ~has_child


def _held_above(dag: Dag, node: int, holds: np.ndarray) -> int:
    """The nearest tree parent that holds a class."""
    while not holds[node]:
        node = int(dag.tree_parent[node])
    return node


def _walk(dag: Dag) -> list[int]:
    """Nodes depth-first along tree parents, the smaller branches first."""
    children: list[list[int]] = [[] for _ in range(len(dag))]
    for node in range(1, len(dag)):
        children[dag.tree_parent[node]].append(node)
    size = dag.below.sum(axis=1)
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(sorted(children[node], key=lambda c: (size[c], dag.names[c]), reverse=True))
    return order
