"""Trees of classes: by Ward's clustering of their features, how far two trees are apart, and two facing each other.

Dimensions: C classes, V nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD
from fsviz.records.graphs import ClassTree, Tanglegram

ROUNDS = 8  # of turning branches to undo crossings
SHUFFLES = 20


def ward_tree(points: np.ndarray, names: Sequence[str]) -> ClassTree:
    """The tree that Ward's clustering of class features (C, d) gives: at each step the two groups are joined whose
    union has the least spread more than both; heights are the distances at which they join."""
    from scipy.cluster.hierarchy import linkage

    n = len(points)
    if n < 2:
        raise BadInput(f"A tree of classes needs two of them at least. Got {n}.")
    joined = linkage(np.asarray(points, dtype=float), "ward")
    parents = np.full(2 * n - 1, PAD)
    for k, (a, b) in enumerate(joined[:, :2].astype(int)):
        parents[[a, b]] = n + k
    heights = np.concatenate([np.zeros(n), joined[:, 2]])
    return ClassTree(parents, heights, np.arange(n), (*map(str, names), *[""] * (n - 1)))


def tree_hops(tree: ClassTree) -> np.ndarray:
    """Edges (C, C) on the path from one class to another."""
    children = np.flatnonzero(tree.parents != PAD)
    return graph_hops(tree.parents[children], children, tree.leaves, len(tree.parents))


def graph_hops(parents: np.ndarray, children: np.ndarray, class_nodes: np.ndarray, n_nodes: int) -> np.ndarray:
    """Fewest edges (C, C) between the nodes of any two classes, along these edges in either direction."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    edges = coo_array((np.ones(len(parents)), (parents, children)), shape=(n_nodes, n_nodes))
    nodes, place = np.unique(class_nodes, return_inverse=True)
    hops = shortest_path(edges.tocsr(), directed=False, unweighted=True, indices=nodes)
    return hops[np.ix_(place, nodes[place])] if len(nodes) else np.zeros((0, 0))


@dataclass(frozen=True)
class HopDistance:
    """Distance between two trees of the same classes, in hops.

    hops        mean over pairs of classes of the difference in edges between them
    normalised  the same after the hops of each tree are divided by their mean: 0 for the same tree, whatever its depth
    chance      normalised, when the classes of one tree are shuffled
    """

    hops: float
    normalised: float
    chance: float


def hop_distance(first: np.ndarray, second: np.ndarray, seed: int = 0) -> HopDistance:
    """The distance of two trees, given by the hops (C, C) between the same classes (Arnold & Sha 2021, section 5.3)."""
    if first.shape != second.shape or len(first) < 2:
        raise BadInput("Two trees are compared over the same classes, two of them at least.")
    i, j = np.triu_indices(len(first), 1)
    a, b = first[i, j], second[i, j]
    scaled = a / (a.mean() or 1.0)
    unit = second / (b.mean() or 1.0)
    rng = np.random.default_rng(seed)
    shuffled = []
    for _ in range(SHUFFLES):
        order = rng.permutation(len(first))
        shuffled.append(np.abs(scaled - unit[np.ix_(order, order)][i, j]).mean())
    return HopDistance(float(np.abs(a - b).mean()), float(np.abs(scaled - unit[i, j]).mean()), float(np.mean(shuffled)))


def tanglegram(left: ClassTree, right: ClassTree) -> Tanglegram:
    """Two trees of the same classes with their branches turned so that few lines between the same classes cross.

    Branches are turned in turns: each tree sorts them by where their classes stand in the other. The order with the
    fewest crossings is kept; it need not be the best there is.
    """
    n = len(left.leaves)
    ranks = [np.arange(n, dtype=float), np.arange(n, dtype=float)]
    best: tuple[int, np.ndarray, np.ndarray] | None = None
    for _ in range(ROUNDS):
        ranks[0] = _turned(left, ranks[1])
        ranks[1] = _turned(right, ranks[0])
        crossings = count_crossings(ranks[0], ranks[1])
        if best is None or crossings < best[0]:
            best = (crossings, ranks[0].copy(), ranks[1].copy())
    assert best is not None
    crossings, first, second = best
    order = np.argsort(first)
    uncrossed = order[longest_rise(second[order])]
    crossing = np.ones(n, dtype=bool)
    crossing[uncrossed] = False
    return Tanglegram(
        (left, right), (first, second), (_middles(left, first), _middles(right, second)), crossing, crossings
    )


def count_crossings(first: np.ndarray, second: np.ndarray) -> int:
    """Pairs of classes that stand in one order on one side and in the other on the other side."""
    order = second[np.argsort(first, kind="stable")]
    return int(np.triu(order[:, None] > order[None, :], 1).sum())


def longest_rise(values: np.ndarray) -> np.ndarray:
    """Places of a longest rising subsequence (patience sorting): the most lines of which no two cross."""
    tails: list[int] = []
    before = np.full(len(values), -1)
    for i, value in enumerate(values):
        at = int(np.searchsorted([values[t] for t in tails], value))
        before[i] = tails[at - 1] if at else -1
        tails[at : at + 1] = [i]
    place, positions = tails[-1] if tails else -1, []
    while place >= 0:
        positions.append(place)
        place = int(before[place])
    return np.array(positions[::-1], dtype=int)


def _children(tree: ClassTree) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in tree.parents]
    for node, parent in enumerate(tree.parents):
        if parent != PAD:
            below[parent].append(node)
    return below


def _downwards(tree: ClassTree, below: list[list[int]]) -> list[int]:
    """Nodes, every parent before its children."""
    order = [int(np.flatnonzero(tree.parents == PAD)[0])]
    for node in order:
        order += below[node]
    return order


def _turned(tree: ClassTree, position: np.ndarray) -> np.ndarray:
    """Rank (C,) of every class when branches are sorted by the mean target position of the classes below them."""
    below = _children(tree)
    order = _downwards(tree, below)
    total, count = np.zeros(len(tree.parents)), np.zeros(len(tree.parents))
    total[tree.leaves], count[tree.leaves] = position, 1
    for node in reversed(order):
        if tree.parents[node] != PAD:
            total[tree.parents[node]] += total[node]
            count[tree.parents[node]] += count[node]
    mean = total / np.maximum(count, 1)
    ranks, waiting, n = np.zeros(len(tree.parents)), [order[0]], 0
    while waiting:
        node = waiting.pop()
        ranks[node] = n
        n += not below[node]
        waiting += sorted(below[node], key=lambda child: (-mean[child], -child))
    return ranks[tree.leaves]


def _middles(tree: ClassTree, ranks: np.ndarray) -> np.ndarray:
    """Height on the page (V,) of every node: leaves at their rank, others in the middle of their children."""
    below = _children(tree)
    at = np.zeros(len(tree.parents))
    at[tree.leaves] = ranks
    for node in reversed(_downwards(tree, below)):
        if below[node]:
            at[node] = (min(at[c] for c in below[node]) + max(at[c] for c in below[node])) / 2
    return at
