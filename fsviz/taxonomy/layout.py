"""Where to draw the nodes of a taxonomy. Every node hangs below its first parent; other edges are drawn across."""

from __future__ import annotations

import numpy as np

from fsviz.taxonomy.dag import Dag


def class_order(dag: Dag) -> np.ndarray:
    """(C,) classes in the order in which a walk down the taxonomy meets them: relatives stand side by side."""
    rank = np.empty(len(dag), dtype=np.int64)
    rank[_walk(dag)] = np.arange(len(dag))
    return np.argsort(rank[dag.class_nodes], kind="stable")


def radial(dag: Dag, shown: np.ndarray) -> np.ndarray:
    """(len(shown), 2) places with the root in the middle and the ends of branches evenly around a circle.

    The radius is the depth; ends lie on the outermost circle however deep they are, so that their names can be read.
    """
    across, slots, ends = _across(dag, shown)
    angle = 2 * np.pi * across[shown] / max(slots, 1)
    radius = np.where(ends[shown], max(int(dag.depth[shown].max()), 1), dag.depth[shown]).astype(float)
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)


def layered(dag: Dag, shown: np.ndarray) -> np.ndarray:
    """(len(shown), 2) places with the root on the left, a column for each depth, ends of branches in the last one."""
    across, slots, ends = _across(dag, shown)
    last = max(int(dag.depth[shown].max()), 1)
    column = np.where(ends[shown], last, dag.depth[shown]).astype(float)
    return np.stack([column, across[shown] / max(slots - 1, 1) * last], axis=1)


def _across(dag: Dag, shown: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Place of every shown node along the outer edge, the number of places, and which nodes are ends of branches.

    Ends take one place each, other nodes the middle of their ends.
    """
    visible = np.zeros(len(dag), dtype=bool)
    visible[shown] = True
    walk = [node for node in _walk(dag) if visible[node]]
    low, high = np.full(len(dag), np.inf), np.zeros(len(dag))
    slots = 0
    has_child = np.zeros(len(dag), dtype=bool)
    has_child[[dag.first_parent[node] for node in walk if dag.first_parent[node] >= 0]] = True
    for node in walk:
        if not has_child[node]:
            low[node] = high[node] = slots
            slots += 1
    for node in reversed(walk):  # children come after their parents in the walk
        parent = dag.first_parent[node]
        if parent >= 0:
            low[parent], high[parent] = min(low[parent], low[node]), max(high[parent], high[node])
    return (low + high) / 2, slots, visible & ~has_child


def _walk(dag: Dag) -> list[int]:
    """Nodes depth-first along first parents, the smaller branches first."""
    children: list[list[int]] = [[] for _ in range(len(dag))]
    for node in range(1, len(dag)):
        children[dag.first_parent[node]].append(node)
    size = dag.below.sum(axis=1)
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(sorted(children[node], key=lambda c: (size[c], dag.names[c]), reverse=True))
    return order
