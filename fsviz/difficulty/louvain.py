"""Louvain's communities (Blondel et al. 2008), compiled. Imported only where communities are sought.

Modularity of a partition of a graph with total edge weight m:
    Q = sum over communities c of  inside(c) / m - (degree(c) / 2m)^2
where inside(c) is the weight of the edges within c and degree(c) the sum of its vertices' degrees. Vertices move, in
random order, to the neighbouring community that raises Q most until a pass gains less than TOLERANCE; after the first
pass only vertices with a neighbour that moved are looked at again. Communities then become the vertices of a smaller
graph, and so on while Q grows. The last level is the answer, as in python-louvain.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TOLERANCE = 1e-7
_BINS = 4096


@njit(cache=True, nogil=True)
def _next(state: np.ndarray) -> np.uint32:
    """The next 64 random bits (splitmix64, Steele et al. 2014); state (1,) uint64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _shuffle(values: np.ndarray, state: np.ndarray) -> None:
    for i in range(len(values) - 1, 0, -1):
        j = np.int64(_next(state) % np.uint64(i + 1))
        values[i], values[j] = values[j], values[i]


@njit(cache=True, nogil=True)
def heaviest_edges(weights: np.ndarray, n_edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The n_edges heaviest positive edges of a symmetric matrix (V, V), as rows: starts (V + 1,), ends, values.

    Edges as heavy as the lightest that is kept are kept too, so that the order of the vertices decides nothing.
    Every edge stands in the rows of both its ends.
    """
    n = len(weights)
    low, high, there = np.inf, 0.0, 0
    for i in range(n):
        for j in range(i):
            w = weights[i, j]
            if w > 0:
                there += 1
                low, high = min(low, w), max(high, w)
    # Which bin holds the lightest edge to keep: all edges in it and above are looked at once more.
    scale = (_BINS - 1) / (high - low) if high > low else 0.0
    counts = np.zeros(_BINS, dtype=np.int64)
    for i in range(n):
        for j in range(i):
            w = weights[i, j]
            if w > 0:
                counts[np.int64((w - low) * scale)] += 1
    last, above = _BINS - 1, 0
    while last > 0 and above + counts[last] < n_edges:
        above += counts[last]
        last -= 1
    n_near = above + counts[last]
    first, second, near = np.empty(n_near, np.uint32), np.empty(n_near, np.uint32), np.empty(n_near)
    inside = np.empty(counts[last])  # the weights in that bin
    at = filled = 0
    for i in range(n):
        for j in range(i):
            w = weights[i, j]
            if w > 0:
                bin_ = np.int64((w - low) * scale)
                if bin_ >= last:
                    first[at], second[at], near[at] = i, j, w
                    at += 1
                if bin_ == last:
                    inside[filled] = w
                    filled += 1
    least = np.sort(inside)[n_near - n_edges] if n_near > n_edges else low
    starts = np.zeros(n + 1, dtype=np.int64)
    for e in range(n_near):
        if near[e] >= least:
            starts[first[e] + 1] += 1
            starts[second[e] + 1] += 1
    starts = np.cumsum(starts)
    ends = np.empty(starts[-1], dtype=np.uint32)
    values = np.empty(starts[-1])
    place = starts[:-1].copy()
    for e in range(n_near):
        if near[e] >= least:
            for v, u in ((first[e], second[e]), (second[e], first[e])):
                ends[place[v]], values[place[v]] = u, near[e]
                place[v] += 1
    return starts, ends, values


@njit(cache=True, nogil=True)
def _one_level(
    starts: np.ndarray, ends: np.ndarray, values: np.ndarray, degrees: np.ndarray, total: float, state: np.ndarray
) -> tuple[np.ndarray, float]:
    """Moves vertices between communities until nothing is gained: community (V,) of every vertex, and the gain in Q.

    total    the weight of all edges, m
    degrees  (V,) with what became an edge of a vertex to itself, which is in no row: it never moves its vertex
    """
    n = len(degrees)
    community = np.arange(n).astype(np.uint32)  # unsigned indices are taken as they are, others may count from the end
    degree_of = degrees.copy()  # of the communities
    to = np.zeros(n)  # weight from the current vertex to every community near it
    near = np.empty(n + 1, dtype=np.uint32)
    order = np.arange(n).astype(np.uint32)
    awake = np.ones(n, dtype=np.bool_)  # vertices with a neighbour that moved since they were looked at
    gain = 0.0
    while True:
        _shuffle(order, state)
        gained = 0.0
        for v in order:
            if not awake[v]:
                continue
            awake[v] = False
            own, n_near = community[v], 0
            for e in range(starts[v], starts[v + 1]):
                c = community[ends[e]]
                near[n_near] = c
                n_near += to[c] == 0.0  # no branch: which communities are near is hard to foretell
                to[c] += values[e]
            share = degrees[v] / (2 * total)
            degree_of[own] -= degrees[v]
            stay = to[own] - degree_of[own] * share
            best, most = own, 0.0
            for k in range(n_near):
                c = near[k]
                more = to[c] - degree_of[c] * share - stay
                if more > most:
                    best, most = c, more
            for k in range(n_near):
                to[near[k]] = 0.0
            degree_of[best] += degrees[v]
            gained += most
            if best != own:
                community[v] = best
                for e in range(starts[v], starts[v + 1]):
                    awake[ends[e]] = awake[ends[e]] or community[ends[e]] != best
        gain += gained / total
        if gained / total < TOLERANCE:
            return community, gain


@njit(cache=True, nogil=True)
def _numbered(community: np.ndarray) -> tuple[np.ndarray, int]:
    """Communities counted from 0 in the order of their first vertex, and how many there are."""
    number = np.full(len(community), -1, dtype=np.int64)
    n = 0
    for v in range(len(community)):
        if number[community[v]] < 0:
            number[community[v]] = n
            n += 1
    return number[community], n


@njit(cache=True, nogil=True)
def _joined(
    starts: np.ndarray, ends: np.ndarray, values: np.ndarray, community: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The graph of communities: weights between two add up, those within one are excluded."""
    dense = np.zeros((n, n))
    for v in range(len(starts) - 1):
        for e in range(starts[v], starts[v + 1]):
            dense[community[v], community[ends[e]]] += values[e]
    count = 0
    for a in range(n):
        dense[a, a] = 0.0
        for b in range(n):
            count += dense[a, b] != 0
    new_starts = np.zeros(n + 1, dtype=np.int64)
    new_ends = np.empty(count, dtype=np.uint32)
    new_values = np.empty(count)
    at = 0
    for a in range(n):
        for b in range(n):
            if dense[a, b] != 0:
                new_ends[at], new_values[at] = b, dense[a, b]
                at += 1
        new_starts[a + 1] = at
    return new_starts, new_ends, new_values


@njit(cache=True, nogil=True)
def communities(starts: np.ndarray, ends: np.ndarray, values: np.ndarray, seed: np.uint64) -> np.ndarray:
    """Community (V,) of every vertex, counted from 0. Vertices without edges are communities of their own."""
    state = np.empty(1, dtype=np.uint64)
    state[0] = seed
    n = len(starts) - 1
    total = values.sum() / 2
    community_of = np.arange(n)
    if total == 0.0:
        return community_of
    degrees = np.zeros(n)
    for v in range(n):
        for e in range(starts[v], starts[v + 1]):
            degrees[v] += values[e]
    while True:
        level, gain = _one_level(starts, ends, values, degrees, total, state)
        level, n_level = _numbered(level)
        if gain < TOLERANCE or n_level == len(degrees):
            return community_of
        community_of = level[community_of]
        starts, ends, values = _joined(starts, ends, values, level, n_level)
        joined = np.zeros(n_level)
        for v in range(len(degrees)):
            joined[level[v]] += degrees[v]
        degrees = joined
