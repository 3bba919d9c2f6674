"""Confusion of one pair of classes (600 + 600 images, 640 dimensions, 5 runs) against python-louvain.

The other side is what one writes first: cosines by numpy, a Python list of all edges, sorted, the k V heaviest put into
a networkx graph, python-louvain on it. Both see the same features and keep the same edges; the confusions are compared
over pairs from far apart to one and the same. The demo's 435 test pairs are timed too, as the page opens with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

N_IMAGES, N_DIMS, K, N_RUNS = 600, 640, 20, 5
OVERLAPS = (0.0, 1.0, 1.2, 1.3, 1.6)  # how far the classes are apart


def two_classes(apart: float, seed: int = 0) -> Any:
    """Two classes of non-negative features with six subgroups each, `apart` along some of the dimensions."""
    from fsviz.records import Features

    rng = np.random.default_rng(seed)
    groups = 0.5 * rng.normal(size=(6, N_DIMS))
    labels = np.repeat([0, 1], N_IMAGES)
    values = groups[rng.integers(0, 6, len(labels))] + rng.normal(size=(len(labels), N_DIMS))
    values[labels == 1, : N_DIMS // 4] += apart
    return Features("synthetic", "synthetic", np.abs(values).astype(np.float32), np.arange(len(labels)), labels)


def by_python_louvain(features: Any) -> float:
    """Confusion in bits, all edges sorted in Python."""
    import networkx as nx
    from community import best_partition

    unit = features.values / np.linalg.norm(features.values, axis=1, keepdims=True)
    cosines = unit @ unit.T
    n = len(unit)
    edges = [(i, j, float(cosines[i, j])) for i in range(n) for j in range(i + 1, n)]
    edges.sort(key=lambda edge: edge[2], reverse=True)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(edges[: K * n])
    bits = []
    for seed in range(N_RUNS):
        partition = best_partition(graph, random_state=seed)
        total = 0.0
        for community in set(partition.values()):
            inside = [features.class_ids[v] for v in range(n) if partition[v] == community]
            p = sum(inside) / len(inside)
            if 0 < p < 1:
                total += len(inside) / n * -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
        bits.append(total)
    return float(np.mean(bits))


def run(progress: Callable[[str], None], repeats: int = 5) -> dict[str, Any]:
    from fsviz import datasets, features
    from fsviz.difficulty.class_confusion import class_confusion
    from fsviz.studies.confusion import pairs_of

    pair = np.array([[0, 1]])
    class_confusion(two_classes(1.0), pair)  # loads, or compiles once per installation
    ours, theirs, ratios, overlaps = [], [], [], []
    for apart in OVERLAPS:
        classes = two_classes(apart)
        spent = [_timed(lambda classes=classes: class_confusion(classes, pair)) for _ in range(repeats)]
        seconds, bits = float(np.median([s for s, _ in spent])), float(spent[0][1][0])
        slow, reference = _timed(lambda classes=classes: by_python_louvain(classes))
        progress(f"{apart:g} apart: {bits:.3f} bits in {seconds:.3f} s, python-louvain {reference:.3f} in {slow:.1f} s")
        ours.append(seconds)
        theirs.append(slow)
        ratios.append(slow / seconds)
        overlaps.append((bits, reference))
    off = float(np.mean([abs(a - b) for a, b in overlaps]))
    if off > 0.02:
        raise AssertionError(f"confusions differ by {off:.3f} bits on average")
    demo = datasets.load("demo")
    table = features.load(demo, "efficientnet_lite0")
    pairs = pairs_of(demo.split_class_ids("test"), demo.split_class_ids("test"))
    start = time.perf_counter()
    spent_demo, _ = _timed(lambda: class_confusion(table, pairs))
    return {
        "ratio": float(np.median(ratios)),
        "ratio_least": float(min(ratios)),
        "seconds_per_pair": {"fsviz": float(np.median(ours)), "python_louvain": float(np.median(theirs))},
        "bits": overlaps,
        "bits_off": off,
        "demo": {"pairs": len(pairs), "seconds": time.perf_counter() - start, "processor_seconds": spent_demo},
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, which other programs do not lengthen, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
