"""Positions of the classes of a graph: springs, or two columns."""

from __future__ import annotations

import math

import numpy as np

from fsviz.difficulty import class_confusion
from fsviz.records.graphs import ClassGraph

_MAX_LAID_OUT = 400  # classes: the springs of more take fewer steps


def communities(graph: ClassGraph, seed: int = 0) -> np.ndarray:
    """Louvain communities (C,) of the classes of a graph that is not bipartite, the largest first."""
    return class_confusion.find_communities(graph.weights, seed=seed)


def community_order(graph: ClassGraph, values: np.ndarray) -> np.ndarray:
    """(C,) positions of the classes, by community; in each, the class most similar to the others comes first."""
    same = values[:, None] == values[None, :]
    inside = np.nansum(np.where(same, graph.weights, 0.0), axis=1)
    return np.lexsort((-inside, values))


def layout(graph: ClassGraph, seed: int = 0) -> np.ndarray:
    """Positions (C, 2) of the classes by springs between similar classes; each coordinate from -1 to 1.

    All pairs pull, so that the number of drawn edges moves nothing. A bipartite graph has two columns (R + C, 2),
    training classes first, each test class next to the training classes it resembles.
    """
    if graph.is_bipartite:
        return _two_columns(graph)
    n = len(graph.rows)
    weights = np.nan_to_num(graph.weights, nan=0.0)
    weights = weights / (weights.max() or 1.0)
    rest = np.sort(weights, axis=1)[:, -min(n, 4)]  # pairs below the third similarity of both ends pull little
    weights = np.where(weights >= np.minimum(rest[:, None], rest[None, :]), weights, 0.05 * weights)
    xy = _springs(weights, 200 if n <= _MAX_LAID_OUT else 60, np.random.default_rng(seed))
    even = np.stack([_even(_ranks(along)) for along in xy.T], 1)  # half way to an even spread: names need room
    xy = xy / (np.abs(xy).max(axis=0) + 1e-9) + even
    return xy / (np.abs(xy).max(axis=0) + 1e-9)


def _springs(weights: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Positions (C, 2) after Fruchterman & Reingold 1991: neighbours pull, all push, steps get shorter.

    Like networkx's, but the forces of all pairs are one product of matrices: a tenth of the time.
    """
    n = len(weights)
    between = 2.5 / math.sqrt(n)  # distance at which a pull of weight one and the push are equal
    pulls = (weights / between).astype(np.float32)
    xy = rng.random((n, 2), dtype=np.float32)
    steps = 0.1 * float(np.ptp(xy, axis=0).max()) * (1 - np.arange(n_steps) / (n_steps + 1))
    for step in steps:
        lengths = (xy**2).sum(axis=1)
        squared = np.maximum(lengths[:, None] + lengths - 2 * xy @ xy.T, 1e-4)
        force = between**2 / squared - pulls * np.sqrt(squared)
        move = xy * force.sum(axis=1, keepdims=True) - force @ xy
        xy += step * move / np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 0.01)
    return xy - xy.mean(axis=0)


def _two_columns(graph: ClassGraph) -> np.ndarray:
    weights = np.nan_to_num(graph.weights, nan=0.0) ** 2
    left = np.arange(len(graph.rows), dtype=float)
    for _ in range(8):  # each class moves to the mean position of similar ones, then positions are spread evenly
        right = _ranks(weights.T @ _even(left) / np.maximum(weights.sum(axis=0), 1e-12))
        left = _ranks(weights @ _even(right) / np.maximum(weights.sum(axis=1), 1e-12))
    x = np.repeat([-1.0, 1.0], [len(left), len(right)])
    return np.stack([x, np.concatenate([_even(left), _even(right)])], 1)


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def _even(ranks: np.ndarray) -> np.ndarray:
    return 2 * (ranks + 0.5) / len(ranks) - 1
