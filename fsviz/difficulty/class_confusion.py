"""Class overlap in feature space: communities of similar images, detected without labels.

For two classes A and B (Bontonou et al. 2020, section IV-B): all their images are the vertices V of a graph, joined by
the cosines of their features, of which the k |V| heaviest stay (k |V| / 2 with centred roots), at most |V|² / 5: the
paper's k = 20 is made for 1,200 images, and in a small graph it would keep nearly all edges. Louvain's algorithm finds
communities in it without looking at labels. With p(C) the share of A's images in community C, the confusion of
A and B is

    H(Y|C) = sum over communities C of  |C| / |V| * h(p(C)),   h(p) = -p log2 p - (1 - p) log2 (1 - p),

in bits: 0 if every community holds one class, 1 if communities are independent of the class; the mean over a few
seeded runs. It is the lowest cross-entropy of a classifier that sees only the community of an image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fsviz.errors import BadInput, Missing
from fsviz.records import Features, Progress
from fsviz.settings import SEED, Setting

PREPROCESS = Setting(
    "preprocess",
    "Preprocessing",
    "Plain: cosine of two images' features, as in the paper. Square root, centred: take square roots and "
    "subtract the mean of the two classes first, as in the authors' code; for non-negative features.",
    "choice",
    "plain",
    choices={"plain": "Plain", "sqrt_center": "Square root, centred"},
    advanced=True,
)
K = Setting(
    "k",
    "Edges per image",
    "Edges per image in the graph of two classes: the heaviest of all edges, not of each image. At most a fifth of the "
    "pair's images are used. Paper: 20, of 1,200 images. With 'Square root, centred' an edge counts for both of its "
    "images, as in the authors' code: 20 keeps 10 per image.",
    "int",
    20,
    1,
    1000,
    typical=50,
    brief="k{}",
    advanced=True,
)
N_RUNS = Setting(
    "n_runs",
    "Louvain runs per pair",
    "Louvain's algorithm visits the images in random order, so results vary. The overlap is the mean over "
    "this many runs.",
    "int",
    5,
    1,
    100,
    typical=20,
    advanced=True,
)
BACKEND = Setting(
    "backend",
    "Louvain implementation",
    "Compiled: the fast one of fsviz. python-louvain: the library of the authors' code, about 100 times slower.",
    "choice",
    "compiled",
    choices={"compiled": "Compiled", "python_louvain": "python-louvain"},
)
RANDOM = SEED.with_(help="The same seed gives the same communities.")
SETTINGS: dict[str, Setting] = {s.name: s for s in (PREPROCESS, K, N_RUNS, RANDOM, BACKEND)}

_SAME = 1e-12  # squared length or distance, in those of the features, that is nothing but rounding
_KEPT = 128 * 2**20  # bytes of features kept between pairs
_MIN_IMAGES = 5  # of two classes together: a fifth of fewer is no edge per image
_NEAR = 0.05  # mean squared distance of unit features below which cosines are computed in float64


def task_confusion(confusion: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Sum (T,) of the confusions of every pair of a task's classes (figure 3 of the paper): higher is harder.

    confusion  (C, C) symmetric, in bits; its diagonal has no part
    positions  (T, W) places of the tasks' classes in it, PAD if a task has fewer
    """
    positions = np.asarray(positions)
    padded = np.zeros((len(confusion) + 1,) * 2)  # PAD is the last row and column
    padded[:-1, :-1] = confusion
    first, second = np.triu_indices(positions.shape[1], 1)
    return padded[positions[:, first], positions[:, second]].sum(axis=1)


def label_entropy(communities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """H(Y|C) in bits for every run: communities (R, V) counted from 0, labels (V,) 0 or 1. From 0 to 1."""
    communities = np.atleast_2d(communities)
    n_runs, size = communities.shape
    place = communities + np.arange(n_runs)[:, None] * size
    whole = np.bincount(place.ravel(), minlength=n_runs * size)
    ones = np.bincount(place.ravel(), np.broadcast_to(labels, place.shape).ravel(), minlength=n_runs * size)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(n > 0, n * np.log2(n / whole), 0.0) for n in (ones, whole - ones)]
    return np.maximum(-(terms[0] + terms[1]).reshape(n_runs, size).sum(axis=1) / size, 0.0)


def find_communities(weights: np.ndarray, n_edges: int | None = None, seed: int = 0) -> np.ndarray:
    """Louvain communities (C,) of a graph given by its weights (C, C): the heaviest n_edges, or all positive ones.

    They are counted from 0, the largest first. NaN and negative weights are no edges.
    """
    from fsviz.difficulty import louvain

    weights = np.ascontiguousarray(np.nan_to_num(np.asarray(weights, dtype=float), nan=0.0))
    n = len(weights)
    starts, ends, heavy = louvain.heaviest_edges(weights, n * n if n_edges is None else n_edges)
    return _by_size(louvain.communities(starts, ends, heavy, np.uint64(seed)))


@dataclass(frozen=True)
class PairCommunities:
    """The images of two classes and the communities they fell into.

    image_ids (V,); labels (V,) 0 for the first class, 1 for the second; communities (R, V) of every run, counted from
    0 with the largest first; bits (R,) confusion of every run.
    """

    image_ids: np.ndarray
    labels: np.ndarray
    communities: np.ndarray
    bits: np.ndarray

    @property
    def typical(self) -> int:
        """The run whose confusion is nearest to the mean."""
        return int(np.abs(self.bits - self.bits.mean()).argmin())

    @cached_property
    def other_share(self) -> np.ndarray:
        """(V,) share of the other class in an image's community, mean over runs: how confused the image is."""
        shares = np.empty(self.communities.shape)
        for run, communities in enumerate(self.communities):
            ones = np.bincount(communities, self.labels) / np.bincount(communities)
            shares[run] = np.where(self.labels == 1, 1 - ones[communities], ones[communities])
        return shares.mean(axis=0)

    def counts(self, run: int) -> np.ndarray:
        """(n communities, 2) images of the first and of the second class in every community of a run."""
        communities = self.communities[run]
        return np.stack(
            [np.bincount(communities[self.labels == label], minlength=communities.max() + 1) for label in (0, 1)], 1
        )


def class_confusion(
    features: Features,
    pairs: np.ndarray,
    *,
    k: int = 20,
    n_runs: int = 5,
    preprocess: str = "plain",
    seed: int = 0,
    backend: str = "compiled",
    names: Mapping[int, str] | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Confusion (P,) in bits of pairs (P, 2) of class_ids, mean over runs; one pair's does not depend on the others.

    names  class_id -> name, for the sentences that refuse what settings and features cannot give
    """
    rows = _checked_rows(features, np.unique(pairs), preprocess, names or {})
    how = _checked(k=k, n_runs=n_runs, preprocess=preprocess, seed=seed, backend=backend)
    read = _reader(features, rows)
    overlap = np.empty(len(pairs))
    with _pools().limit(limits=1):  # products of two classes are small: threads would wait for each other
        for at, (a, b) in enumerate(pairs):
            if progress is not None and at % 64 == 0:
                progress(at, len(pairs), "pairs of classes")
            labels, communities = _communities(features, rows, read, int(a), int(b), **how)
            overlap[at] = label_entropy(communities, labels).mean()
    return overlap


def pair_communities(
    features: Features,
    a: int,
    b: int,
    *,
    k: int = 20,
    n_runs: int = 5,
    preprocess: str = "plain",
    seed: int = 0,
    backend: str = "compiled",
    names: Mapping[int, str] | None = None,
) -> PairCommunities:
    """The communities behind the confusion of one pair; the mean of their bits is what `class_confusion` gives."""
    rows = _checked_rows(features, np.array([a, b]), preprocess, names or {})
    how = _checked(k=k, n_runs=n_runs, preprocess=preprocess, seed=seed, backend=backend)
    labels, communities = _communities(features, rows, _reader(features, rows), a, b, **how)
    image_ids = features.image_ids[np.concatenate([rows[a], rows[b]])]
    ranked = np.stack([_by_size(run) for run in communities])
    return PairCommunities(image_ids, labels, ranked, label_entropy(communities, labels))


def check_classes(
    features: Features, class_ids: np.ndarray, preprocess: str, names: Mapping[int, str] | None = None
) -> None:
    """Refuses, with what to do, classes whose confusion these features and settings cannot give."""
    _checked_rows(features, class_ids, preprocess, names or {})


def edges_per_image(n_images: int, k: int, preprocess: str = "plain") -> float:
    """Edges per image in the graph of two classes with n_images together: those of k, at most a fifth of the images.

    The authors' list of k |V| edges holds every edge twice, once in each direction.
    """
    return min(k / 2 if preprocess == "sqrt_center" else k, n_images // 5)


def cosines(values: np.ndarray, preprocess: str = "plain") -> np.ndarray:
    """Cosines (V, V) of the rows of values (V, D); sqrt_center takes roots and centres them first.

    Rows without a direction (all zero, or equal to the mean of all) are like each other and unlike the rest.
    Where all rows nearly agree, float32 would lose what tells them apart, and float64 is used.
    """
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        largest = _squares(values).max(initial=1.0)
    if not 1e-200 < largest < 1e200:  # squares of huge or tiny features leave the range of numbers
        values = values / (np.abs(values).max() or 1.0)
    least = 0.0
    if preprocess == "sqrt_center":
        least = _SAME * values.sum(axis=1).max(initial=0.0)  # the sum of a row is the squared length of its roots
        values = np.sqrt(values)
        values -= values.mean(axis=0)
    squares = _squares(values)
    without = squares <= least
    unit = values / np.sqrt(np.where(without, 1.0, squares))[:, None]
    unit[without] = 0.0
    mean = unit.mean(axis=0)
    apart = 1 - mean @ mean  # half the mean squared distance of two rows
    if apart <= _SAME:
        return np.ones((len(unit), len(unit)))
    unit = unit.astype(np.float32) if apart > _NEAR else unit
    similarity = unit @ unit.T
    if without.any():
        similarity[np.ix_(without, without)] = 1.0
    return similarity


@lru_cache(maxsize=1)
def _pools() -> Any:
    """The thread pools of linear algebra; finding them takes longer than a small product."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _squares(values: np.ndarray) -> np.ndarray:
    return np.einsum("vd,vd->v", values, values)


def _checked(**how: object) -> dict[str, Any]:
    return {name: SETTINGS[name].check(value) for name, value in how.items()}


def _reader(features: Features, rows: Mapping[int, np.ndarray]) -> Callable[[int], np.ndarray]:
    """Features of a class, kept for its next pair as far as memory allows; float16 is slow to compute with."""
    bytes_per_class = 4 * max(map(len, rows.values())) * features.values.shape[1]

    @lru_cache(maxsize=max(2, _KEPT // bytes_per_class))
    def read(class_id: int) -> np.ndarray:
        values = np.asarray(features.values[rows[class_id]])
        return values.astype(np.float32) if values.dtype == np.float16 else values

    return read


def _communities(
    features: Features,
    rows: Mapping[int, np.ndarray],
    read: Callable[[int], np.ndarray],
    a: int,
    b: int,
    k: int,
    n_runs: int,
    preprocess: str,
    seed: int,
    backend: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (V,) of the images of a, then of b, and their communities (R, V): the same whichever is named first."""
    if a > b:
        labels, communities = _communities(features, rows, read, b, a, k, n_runs, preprocess, seed, backend)
        order = np.argsort(1 - labels, kind="stable")
        return (1 - labels)[order], communities[:, order]
    both = np.concatenate([rows[a], rows[b]])
    labels = np.repeat([0, 1], [len(rows[a]), len(rows[b])])
    weights = cosines(np.concatenate([read(a), read(b)]), preprocess)
    if features.groups is not None:  # copies of a picture are alike whatever the backbone sees: they are not joined
        group = features.groups[features.image_ids[both]]
        weights[group[:, None] == group[None, :]] = 0.0
    seeds = np.random.SeedSequence(seed, spawn_key=(a, b)).generate_state(n_runs, np.uint64)
    return labels, _BACKENDS[backend](weights, int(len(both) * edges_per_image(len(both), k, preprocess)), seeds)


def _checked_rows(
    features: Features, class_ids: np.ndarray, preprocess: str, names: Mapping[int, str]
) -> dict[int, np.ndarray]:
    """The rows of every class; refused with what to do where they are too few or of no use."""

    def name(class_id: int) -> str:
        return repr(str(names.get(class_id, class_id)))

    again = f"{features.remake[:1].upper()}{features.remake[1:]}"
    order = np.argsort(features.class_ids, kind="stable")
    bounds = np.searchsorted(features.class_ids[order], np.stack([class_ids, np.add(class_ids, 1)]))
    rows = {int(c): order[start:stop] for c, start, stop in zip(class_ids, *bounds, strict=True)}
    if len(rows) < 2:
        raise BadInput(f"Confusion is between two classes at least. Got {len(rows)}. Choose a split with more classes.")
    (a, fewest), (b, second) = sorted(((c, len(r)) for c, r in rows.items()), key=lambda item: item[1])[:2]
    if not fewest:
        raise Missing(f"Class {name(a)} has no features under {features.backbone!r}. {again}, or choose another split.")
    if fewest + second < _MIN_IMAGES:
        raise BadInput(
            f"The overlap of two classes needs at least {_MIN_IMAGES} images of them together. Classes {name(a)} and "
            f"{name(b)} have {fewest + second}. Choose classes with more images."
        )
    differ = False
    first = features.values[rows[a][0]]
    for class_id, own in rows.items():
        values = features.values[own]
        if not np.isfinite(values).all():
            raise BadInput(
                f"Features of class {name(class_id)} under {features.backbone!r} are not all finite numbers. {again}."
            )
        if preprocess == "sqrt_center" and values.min() < 0:
            raise BadInput(
                f"preprocess 'sqrt_center' takes square roots, so features must not be negative. Got "
                f"{values.min():.3g} in class {name(class_id)} under {features.backbone!r}. Use preprocess 'plain'."
            )
        differ = differ or bool((values != first).any())
    if not differ:
        raise BadInput(
            f"All images of these {len(rows)} classes have the same features under {features.backbone!r}, so nothing "
            "tells the classes apart. Use the features of another backbone."
        )
    return rows


def _compiled(weights: np.ndarray, n_edges: int, seeds: np.ndarray) -> np.ndarray:
    from fsviz.difficulty import louvain

    starts, ends, heavy = louvain.heaviest_edges(weights.astype(np.float64, copy=False), n_edges)
    return np.stack([louvain.communities(starts, ends, heavy, seed) for seed in seeds])


def _python_louvain(weights: np.ndarray, n_edges: int, seeds: np.ndarray) -> np.ndarray:
    """The same by python-louvain on a networkx graph."""
    import networkx as nx
    from community import best_partition

    first, second = np.triu_indices(len(weights), 1)
    values = weights[first, second]
    if n_edges < len(values):
        values[values < np.partition(values, -n_edges)[-n_edges]] = 0.0
    is_edge = values > 0
    graph = nx.Graph()
    graph.add_nodes_from(range(len(weights)))
    graph.add_weighted_edges_from(
        zip(first[is_edge].tolist(), second[is_edge].tolist(), values[is_edge].tolist(), strict=True)
    )
    runs = [best_partition(graph, random_state=int(seed % 2**32)) for seed in seeds]
    return np.array([[run[v] for v in range(len(weights))] for run in runs])


def _by_size(communities: np.ndarray) -> np.ndarray:
    """Communities counted from 0, the largest first."""
    counts = np.bincount(communities)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.lexsort((np.arange(len(counts)), -counts))] = np.arange(len(counts))
    return rank[communities]


_BACKENDS = {"compiled": _compiled, "python_louvain": _python_louvain}
