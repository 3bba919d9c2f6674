"""Distances between classes, all pairs at once: from their places in a taxonomy, or from what their images look like.

Every function returns a symmetric (C, C) matrix with a zero diagonal, from a Dag of C classes or from their features.
DISTANCES names them; a new distance is a function and an entry there.
Notation: |v| is the number of images of the classes at or below node v, lso(a, b) the lowest superordinate of
classes a and b: among their common ancestors, the one with the smallest |v|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import Features
from fsviz.settings import Setting
from fsviz.taxonomy.dag import DAG_MODES, Dag


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


def feature_distances(features: Features, class_ids: np.ndarray) -> np.ndarray:
    """Euclidean distances between the means of the unit-length features of the classes class_ids (C,). At most 2."""
    class_ids = np.asarray(class_ids)
    means = np.zeros((len(class_ids), features.values.shape[1]))
    for position, class_id in enumerate(class_ids):
        rows = np.flatnonzero(features.class_ids == class_id)
        if not len(rows):
            raise Missing(
                f"Class {int(class_id)} of {features.dataset!r} has no features under {features.backbone!r}, so its "
                "mean is unknown. Extract the features again, or pick another distance."
            )
        values = np.asarray(features.values[rows], dtype=float)
        norms = np.linalg.norm(values, axis=1, keepdims=True)
        means[position] = (values / np.where(norms > 0, norms, 1.0)).mean(axis=0)
    squared = (means**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squared[:, None] + squared[None, :] - 2 * means @ means.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


@dataclass(frozen=True)
class Distance:
    """A way to measure how far apart two classes are.

    needs       what `measure` takes: "taxonomy" (a Dag) or "features" (Features and class_ids)
    alpha       the weight of closeness that suits it, and alpha_most the usual end of a slider: a distance between
                0 and 1 needs a larger alpha than one that reaches 15
    by_counts   whether image counts enter it
    formula     LaTeX; symbols names every symbol in it
    """

    title: str
    description: str
    measure: Callable[..., np.ndarray]
    alpha: float
    alpha_most: float
    formula: str = ""
    symbols: str = ""
    paper: str = ""
    needs: Literal["taxonomy", "features"] = "taxonomy"
    by_counts: bool = False


DISTANCES: dict[str, Distance] = {
    "jiang_conrath": Distance(
        "Jiang-Conrath",
        "2 log|s| - log|a| - log|b|: how many images the smallest concept s above both classes a and b holds, "
        "against the images of a and of b. The paper's distance.",
        jiang_conrath,
        0.383,
        2.0,
        r"D(a, b) = 2 \log |s| - \log |a| - \log |b|",
        "D: the distance; a, b: two classes; s: the smallest concept above both; |s|: images of all classes below s, "
        "and |a|, |b| those of the two classes",
        "Jiang & Conrath 1997, as used by Bennequin et al. 2022",
        by_counts=True,
    ),
    "path_length": Distance(
        "Path length",
        "the number of is-a steps from one class up to a shared concept and down to the other.",
        path_length,
        0.25,
        1.5,
        r"D(a, b) = \min_{s} \, h(a, s) + h(b, s)",
        "D: the distance; a, b: two classes; s: a concept above both; h: the fewest is-a steps from a class up to it",
        "Rada et al. 1989",
    ),
    "wu_palmer": Distance(
        "Wu-Palmer",
        "from 0 to 1: how deep the shared concept lies, against the depth of the two classes.",
        wu_palmer,
        5.0,
        30.0,
        r"D(a, b) = 1 - \frac{2 \, d(s)}{d(a) + d(b)}",
        "D: the distance; a, b: two classes; s: the deepest concept above both; d: depth in concepts from the root, "
        "which has 1, those of the classes counted through s",
        "Wu & Palmer 1994",
    ),
    "lin": Distance(
        "Lin",
        "from 0 to 1: how specific the shared concept is, against how specific the two classes are.",
        lin,
        5.0,
        30.0,
        r"D(a, b) = 1 - \frac{2 \log p(s)}{\log p(a) + \log p(b)}",
        "D: the distance; a, b: two classes; s: the smallest concept above both; p: the share of all images that is of "
        "classes at or below it",
        "Lin 1998",
        by_counts=True,
    ),
    "features": Distance(
        "Features",
        "the straight-line distance between the mean features of two classes: how alike they look, whatever they mean.",
        feature_distances,
        5.0,
        40.0,
        r"D(a, b) = \lVert \mu_a - \mu_b \rVert",
        "D: the distance; a, b: two classes; mu_a, mu_b: the means of their images' features, made of unit length",
        "",
        needs="features",
    ),
}
DISTANCE = Setting(
    "distance",
    "Class distance",
    "Distance between two classes.",
    "choice",
    "jiang_conrath",
    choices={name: distance.title for name, distance in DISTANCES.items()},
)
DAG = Setting(
    "dag",
    "Taxonomy paths",
    "Classes with several parents: shortest path only (as published) or all paths, which brings them slightly closer.",
    "choice",
    "shortest_path",
    choices=DAG_MODES,
    advanced=True,
)


def class_distances(dag: Dag, distance: str = "jiang_conrath") -> np.ndarray:
    """The (C, C) matrix of one of the DISTANCES that need only a taxonomy."""
    names = [name for name, kind in DISTANCES.items() if kind.needs == "taxonomy"]
    if distance not in names:
        raise UnknownName("distance in a taxonomy", distance, names)
    return DISTANCES[distance].measure(dag)


def superordinates(dag: Dag) -> np.ndarray:
    """lso(a, b) as node indices (C, C): the common ancestor with the smallest count, the deepest where counts tie."""
    return _last_written(dag, np.lexsort((dag.depth, -dag.counts)))


def lowest_superordinate(dag: Dag, positions: Sequence[int] | np.ndarray) -> int:
    """The node with the smallest count above all the classes at these positions of the split."""
    above = np.flatnonzero(dag.below[:, np.asarray(positions, dtype=np.int64)].all(axis=1))
    return int(above[np.lexsort((-dag.depth[above], dag.counts[above]))[0]])


def _last_written(dag: Dag, order: np.ndarray) -> np.ndarray:
    """For every pair of classes, the last node in this order that is above both."""
    last = np.zeros((dag.n_classes, dag.n_classes), dtype=np.int64)
    for node in order:
        under = np.flatnonzero(dag.below[node])
        last[np.ix_(under, under)] = node
    return last


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
            f"This distance needs images in every class; {name!r} has {dag.weights[bad[0]]:g}"
            f"{f', and {len(bad) - 1} more have too few' if len(bad) > 1 else ''}. "
            "Choose another split (if only some classes of a benchmark have images: any but 'all'), or the distance "
            "Path length."
        )
    return np.log(dag.weights)


def _finished(distances: np.ndarray) -> np.ndarray:
    """Exact symmetry, a zero diagonal and no negative rounding dust."""
    distances = np.maximum((distances + distances.T) / 2, 0.0)
    np.fill_diagonal(distances, 0.0)
    return distances
