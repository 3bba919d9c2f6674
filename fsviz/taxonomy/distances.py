"""Distances between classes from their places in a taxonomy, all pairs at once.

Every function takes a Dag of C classes and returns a symmetric (C, C) matrix with a zero diagonal.
Notation: |v| is the number of images of the classes at or below node v, lso(a, b) the lowest superordinate of
classes a and b: among their common ancestors, the one with the smallest |v|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fsviz.errors import BadInput, UnknownName
from fsviz.taxonomy.dag import Dag


def jiang_conrath(dag: Dag) -> np.ndarray:
    """D(a, b) = 2 log|lso(a, b)| - log|a| - log|b| (Jiang & Conrath 1997, as used by Bennequin et al. 2022).

    Zero only for a class and itself; grows without bound with the size of the smallest common concept.
    """
    log_weights = _log_weights(dag)
    distances = 2 * np.log(dag.counts)[superordinates(dag)] - log_weights[:, None] - log_weights[None, :]
    return _finished(distances)


def lin(dag: Dag) -> np.ndarray:
    """1 - 2 log p(lso) / (log p(a) + log p(b)), with p(v) = |v| / |root| (Lin 1998). Between 0 and 1."""
    log_p = _log_weights(dag) - np.log(dag.counts[0])
    both = log_p[:, None] + log_p[None, :]
    shared = 2 * (np.log(dag.counts) - np.log(dag.counts[0]))[superordinates(dag)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return _finished(1 - shared / both)


def path_length(dag: Dag) -> np.ndarray:
    """Fewest is-a edges from one class up to a common ancestor and down to the other (Rada et al. 1989)."""
    hops = _hops(dag)
    distances = np.full((dag.n_classes, dag.n_classes), np.inf)
    for node in range(len(dag)):
        under = np.flatnonzero(dag.below[node])
        block = np.ix_(under, under)
        distances[block] = np.minimum(distances[block], hops[node, under][:, None] + hops[node, under][None, :])
    return _finished(distances)


def wu_palmer(dag: Dag) -> np.ndarray:
    """1 - 2 depth(s) / (depth(a) + depth(b)) with s the deepest common ancestor (Wu & Palmer 1994). Between 0 and 1.

    Depths count nodes, the root has depth 1, and those of a and b are taken through s.
    """
    hops = _hops(dag)
    deepest = _last_written(dag, np.argsort(dag.depth, kind="stable"))
    depth = dag.depth[deepest] + 1
    down = hops[deepest, np.arange(dag.n_classes)[None, :]]
    return _finished(1 - 2 * depth / (2 * depth + down + down.T))


DISTANCES: dict[str, Callable[[Dag], np.ndarray]] = {
    "jiang_conrath": jiang_conrath,
    "path_length": path_length,
    "wu_palmer": wu_palmer,
    "lin": lin,
}


def class_distances(dag: Dag, distance: str = "jiang_conrath") -> np.ndarray:
    """The (C, C) matrix of one of DISTANCES."""
    if distance not in DISTANCES:
        raise UnknownName("distance", distance, [*DISTANCES, "features"])
    return DISTANCES[distance](dag)


def superordinates(dag: Dag) -> np.ndarray:
    """lso(a, b) as node indices (C, C): the common ancestor with the smallest count, the deepest where counts tie."""
    return _last_written(dag, np.lexsort((dag.depth, -dag.counts)))


def lowest_superordinate(dag: Dag, positions: Sequence[int] | np.ndarray) -> int:
    """The node with the smallest count above all the classes at these positions of the split."""
    above = np.flatnonzero(dag.below[:, np.asarray(positions, dtype=np.int64)].all(axis=1))
    return int(above[np.lexsort((-dag.depth[above], dag.counts[above]))[0]])


def _last_written(dag: Dag, order: np.ndarray) -> np.ndarray:
    """For every pair of classes, the last node in this order that is above both."""
    found = np.zeros((dag.n_classes, dag.n_classes), dtype=np.int64)
    for node in order:
        under = np.flatnonzero(dag.below[node])
        found[np.ix_(under, under)] = node
    return found


def _hops(dag: Dag) -> np.ndarray:
    """(V, C) fewest edges from a node down to a class, inf where the class is not below."""
    hops = np.full(dag.below.shape, np.inf)
    hops[dag.class_nodes, np.arange(dag.n_classes)] = 0
    for parent, child in zip(dag.parents[::-1], dag.children[::-1], strict=True):
        np.minimum(hops[parent], hops[child] + 1, out=hops[parent])
    return hops


def _log_weights(dag: Dag) -> np.ndarray:
    bad = np.flatnonzero(~(dag.weights > 0))
    if len(bad):
        name = dag.names[dag.class_nodes[bad[0]]]
        raise BadInput(
            f"This distance needs at least one image in every class. Got {dag.weights[bad[0]]:g} for {name!r}"
            f"{f' and {len(bad) - 1} more' if len(bad) > 1 else ''}. "
            "Leave empty classes out of the split, or use the distance path_length."
        )
    return np.log(dag.weights)


def _finished(distances: np.ndarray) -> np.ndarray:
    """Exact symmetry, a zero diagonal and no negative rounding dust."""
    distances = np.maximum((distances + distances.T) / 2, 0.0)
    np.fill_diagonal(distances, 0.0)
    return distances
