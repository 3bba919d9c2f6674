"""Confusion of classes: bounds, hand-computed entropies, the two backends, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsviz import datasets, features
from fsviz.difficulty import class_confusion as confusion
from fsviz.errors import BadInput, FsvizError, Missing
from fsviz.numerics import pearson
from fsviz.records import PAD, Features


def two_classes(apart: float, n: int = 60, dims: int = 16, seed: int = 0, shift: float = 0.0) -> Features:
    """Gaussian classes whose means are `apart` standard deviations from each other, around a common direction."""
    rng = np.random.default_rng(seed)
    class_ids = np.repeat([0, 1], n)
    centre = np.zeros((2, dims))
    centre[1, 0] = apart
    values = centre[class_ids] + rng.normal(size=(2 * n, dims)) + shift
    return Features("toy", "none", values, 10 + np.arange(2 * n), class_ids)


PAIR = np.array([[0, 1]])


def test_well_separated_classes_have_no_confusion_and_identical_ones_about_one_bit() -> None:
    apart = two_classes(0)
    values = np.abs(np.random.default_rng(0).normal(size=(120, 16)))
    values[:60, 8:] *= 0.01
    values[60:, :8] *= 0.01
    assert confusion.class_confusion(replace(apart, values=values), PAIR)[0] == 0
    for preprocess in ("plain", "sqrt_center"):
        same = replace(apart, values=np.abs(apart.values))
        assert confusion.class_confusion(same, PAIR, preprocess=preprocess)[0] > 0.9


def test_more_overlap_is_more_confusion() -> None:
    bits = [confusion.class_confusion(two_classes(apart, shift=1.0), PAIR)[0] for apart in (0, 2, 4, 8)]
    assert bits[0] > 0.9 and bits[-1] < 0.2
    assert bits == sorted(bits, reverse=True)


def test_entropy_of_communities_by_hand() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    runs = np.array(
        [
            [0, 0, 0, 1, 1, 1, 1, 1],  # pure
            [0, 0, 0, 0, 0, 0, 0, 0],  # all in one: h(3/8)
            [0, 0, 1, 1, 0, 0, 2, 2],  # {2 of A, 2 of B}: 1 bit, {1, 1}: 1 bit, {2 of B}: 0
            [0, 1, 2, 3, 4, 5, 6, 7],  # every image alone
        ]
    )
    h = -(3 / 8) * np.log2(3 / 8) - (5 / 8) * np.log2(5 / 8)
    assert confusion.label_entropy(runs, labels) == pytest.approx([0, h, 6 / 8, 0])


def test_communities_of_two_cliques_and_a_lonely_vertex() -> None:
    weights = np.zeros((9, 9))
    weights[:5, :5] = weights[5:8, 5:8] = 1.0
    weights[0, 5] = weights[5, 0] = 0.1
    np.fill_diagonal(weights, 0)
    result = confusion.find_communities(weights)
    assert result.tolist() == [0] * 5 + [1] * 3 + [2]
    cut = confusion.find_communities(np.where(weights == 0, np.nan, weights), n_edges=10)  # ties stay together
    assert cut.tolist() == result.tolist()


def test_the_compiled_backend_agrees_with_python_louvain_over_a_range_of_overlaps() -> None:
    fast, reference = [], []
    for seed, apart in enumerate(np.linspace(0, 7, 16)):
        features = two_classes(float(apart), n=50, seed=seed, shift=0.7)
        for into, backend in ((fast, "compiled"), (reference, "python_louvain")):
            into.append(confusion.class_confusion(features, PAIR, k=8, n_runs=10, backend=backend)[0])
    fast, reference = np.array(fast), np.array(reference)
    assert np.ptp(reference) > 0.5  # a range, not one end of it
    assert abs((fast - reference).mean()) < 0.02
    assert np.abs(fast - reference).mean() < 0.02
    assert pearson(fast, reference)[0] > 0.995


def published_code(values: np.ndarray, labels: np.ndarray, seeds: range) -> tuple[float, float]:
    """Bits and edges per image as the authors' code has them, with a list that holds every edge in both directions."""
    nx = pytest.importorskip("networkx")
    from community import generate_dendrogram, partition_at_level

    roots = np.sqrt(values) - np.sqrt(values).mean(axis=0)
    unit = roots / np.linalg.norm(roots, axis=1, keepdims=True)
    weights = unit @ unit.T
    n = len(values)
    directed = sorted(((weights[i, j], i, j) for i in range(n) for j in range(n) if i != j), reverse=True)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((i, j, w) for w, i, j in directed[: 20 * n])
    bits = []
    for seed in seeds:
        levels = generate_dendrogram(graph, random_state=seed)
        result = partition_at_level(levels, len(levels) - 1)
        bits.append(confusion.label_entropy(np.array([result[v] for v in range(n)]), labels)[0])
    return float(np.mean(bits)), graph.number_of_edges() / n


def test_centred_roots_keep_the_edges_of_the_authors_code() -> None:
    dataset = datasets.load("demo")
    shipped = features.load(dataset, "efficientnet_lite0")
    table = replace(shipped, values=np.maximum(shipped.values, 0).astype(float), groups=None)
    test = dataset.split_class_ids("test")
    pairs = np.array([np.random.default_rng(seed).choice(test, 2, replace=False) for seed in range(30)])
    theirs = []
    for a, b in pairs:
        rows = np.concatenate([np.flatnonzero(table.class_ids == c) for c in (a, b)])
        bits, edges = published_code(table.values[rows], (table.class_ids[rows] == b).astype(int), range(5))
        assert edges == 10
        theirs.append(bits)
    ours = confusion.class_confusion(table, pairs, preprocess="sqrt_center")
    assert np.abs(ours - theirs).mean() < 0.025 < np.ptp(theirs) / 10  # with 20 edges per image it is 0.04


def test_a_graph_keeps_at_most_a_fifth_of_the_images_as_edges_per_image() -> None:
    small = two_classes(2.0, n=24, shift=1.0)
    capped = confusion.class_confusion(small, PAIR, k=9)
    assert confusion.class_confusion(small, PAIR, k=20).tolist() == capped.tolist()  # 48 images: at most 9
    assert confusion.class_confusion(small, PAIR, k=8).tolist() != capped.tolist()
    assert [confusion.edges_per_image(n, 20) for n in (1200, 100, 96, 48, 7)] == [20, 20, 19, 9, 1]
    assert [confusion.edges_per_image(n, 20, "sqrt_center") for n in (1200, 96, 48)] == [10, 10, 9]


@pytest.mark.parametrize(("preprocess", "edges"), [("plain", 8 * 60), ("sqrt_center", 4 * 60)])
@pytest.mark.parametrize("backend", ["compiled", "python_louvain"])
def test_centred_roots_keep_half_as_many_edges(
    preprocess: str, edges: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, find = [], confusion._BACKENDS[backend]

    def counted(weights: np.ndarray, n_edges: int, seeds: np.ndarray) -> np.ndarray:
        saved.append(n_edges)
        return find(weights, n_edges, seeds)

    monkeypatch.setitem(confusion._BACKENDS, backend, counted)
    table = two_classes(1.0, n=30, shift=9.0)
    confusion.class_confusion(table, PAIR, k=8, preprocess=preprocess, backend=backend)
    assert saved == [edges]


def test_both_backends_reach_the_same_modularity_on_a_known_graph() -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.karate_club_graph()
    weights = nx.to_numpy_array(graph, weight=None)
    best = 0.0
    for seed in range(10):
        result = confusion.find_communities(weights, seed=seed)
        parts = [set(np.flatnonzero(result == c).tolist()) for c in range(result.max() + 1)]
        best = max(best, nx.community.modularity(graph, parts, weight=None))
    assert best == pytest.approx(0.4198, abs=0.002)  # the optimum, Brandes et al. 2008


def test_seeds_decide_and_pairs_do_not_depend_on_company() -> None:
    rng = np.random.default_rng(3)
    class_ids = np.repeat(np.arange(4), 40)
    features = Features("toy", "none", rng.normal(size=(160, 8)) + 0.5 * class_ids[:, None], np.arange(160), class_ids)
    pairs = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    bits = confusion.class_confusion(features, pairs)
    assert bits.tolist() == confusion.class_confusion(features, pairs).tolist()
    assert confusion.class_confusion(features, pairs[2:3])[0] == bits[2]
    assert bits.tolist() != confusion.class_confusion(features, pairs, seed=1).tolist()
    order = rng.permutation(160)  # the order of rows matters to nobody but the random order of the algorithm
    mixed = Features("toy", "none", features.values[order], features.image_ids[order], class_ids[order])
    assert confusion.class_confusion(mixed, pairs) == pytest.approx(bits, abs=0.1)


def test_scale_does_not_matter_and_a_large_common_part_is_seen_through() -> None:
    features = two_classes(3.0, shift=2.0)
    bits = confusion.class_confusion(features, PAIR)
    for factor in (1e-30, 1e25):
        assert confusion.class_confusion(replace(features, values=features.values * factor), PAIR) == pytest.approx(
            bits
        )
    rng = np.random.default_rng(1)
    offset = np.concatenate([[1e4], np.zeros(15)])
    values = 0.1 * rng.normal(size=(120, 16)) + offset
    values[60:, 1] += 4.0
    assert confusion.class_confusion(replace(features, values=values), PAIR)[0] == 0


def test_the_communities_of_a_pair_are_those_behind_its_bits() -> None:
    features = two_classes(2.5, shift=1.0)
    result = confusion.pair_communities(features, 0, 1)
    assert result.bits.mean() == confusion.class_confusion(features, PAIR)[0]
    assert result.image_ids.tolist() == features.image_ids.tolist() and result.labels.sum() == 60
    run = result.typical
    counts = result.counts(run)
    assert counts.sum(axis=0).tolist() == [60, 60] and (np.diff(counts.sum(axis=1)) <= 0).all()
    p = counts[:, 0] / counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = -np.nan_to_num(p * np.log2(p)) - np.nan_to_num((1 - p) * np.log2(1 - p))
    assert (counts.sum(axis=1) * h).sum() / 120 == pytest.approx(result.bits[run])
    # an image is as confused as its communities hold the other class
    by_hand = np.mean(
        [[np.mean(result.labels[c == c[v]] != result.labels[v]) for v in range(120)] for c in result.communities],
        axis=0,
    )
    assert result.other_share == pytest.approx(by_hand)


def test_a_pair_is_the_same_whichever_class_is_named_first() -> None:
    features = two_classes(1.5, 30)
    first, second = confusion.pair_communities(features, 0, 1, k=8), confusion.pair_communities(features, 1, 0, k=8)
    assert first.bits.tolist() == second.bits.tolist()
    assert confusion.class_confusion(features, PAIR[:, ::-1], k=8).tolist() == [first.bits.mean()]
    assert (second.labels == (features.class_ids[features.rows_of(second.image_ids)] == 0)).all()
    place = {image_id: v for v, image_id in enumerate(second.image_ids)}
    same = [place[image_id] for image_id in first.image_ids]
    assert first.other_share == pytest.approx(second.other_share[same])
    assert first.communities.tolist() == second.communities[:, same].tolist()


def test_copies_of_a_picture_are_not_joined() -> None:
    features = two_classes(0, n=40)
    values = features.values.copy()
    values[1::2] = values[::2]  # every picture twice
    groups = np.full(90, PAD)
    groups[features.image_ids] = np.arange(80) // 2
    copied = replace(features, values=values, groups=groups)
    edges = confusion.cosines(values)
    assert edges[0, 1] == pytest.approx(1, abs=1e-6)
    without = confusion.pair_communities(copied, 0, 1, k=1)
    alone = [np.bincount(c).max() for c in without.communities]
    assert min(alone) > 2  # with k = 1 copies would be each other's only neighbours


def test_the_sum_over_the_pairs_of_a_task() -> None:
    matrix = np.array([[9.0, 1, 2], [1, 9, 4], [2, 4, 9]])
    positions = np.array([[0, 1, 2], [2, 0, PAD], [1, PAD, PAD]])
    assert confusion.task_confusion(matrix, positions).tolist() == [7, 2, 0]
    assert confusion.task_confusion(matrix, np.empty((0, 5), dtype=int)).tolist() == []


def refused(features: Features, pairs: np.ndarray = PAIR, **how: object) -> str:
    with pytest.raises(FsvizError) as error:
        confusion.class_confusion(features, pairs, names={0: "cat", 1: "dog"}, **how)
    return str(error.value)


def test_what_cannot_be_is_refused_with_what_to_do() -> None:
    features = two_classes(1.0, n=10)
    text = refused(two_classes(1.0, n=2))
    assert "at least 5 images" in text and "'cat' and 'dog' have 4" in text
    assert "sqrt_center" in refused(features, k=5, preprocess="sqrt_center")
    assert "'plain'" in refused(features, k=5, preprocess="sqrt_center")
    assert "same features" in refused(replace(features, values=np.full((20, 4), 3.0)), k=5)
    spoiled = features.values.copy()
    spoiled[3] = np.nan
    assert "'cat'" in refused(replace(features, values=spoiled), k=5)
    assert "two classes" in refused(features, np.array([[0, 0]]), k=5)
    with pytest.raises(Missing, match="has no features"):
        confusion.class_confusion(features, np.array([[0, 7]]), k=5)
    with pytest.raises(BadInput, match="k must be a whole number"):
        confusion.class_confusion(features, PAIR, k=0)


@pytest.mark.parametrize("preprocess", ["plain", "sqrt_center"])
def test_classes_that_nothing_tells_apart_are_one_bit_among_others(preprocess: str) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full((60, 6), 2.0), np.abs(rng.normal(size=(30, 6)))])
    features = Features("toy", "none", values, np.arange(90), np.repeat([0, 1, 2], 30))
    bits = confusion.class_confusion(features, np.array([[0, 1], [0, 2]]), preprocess=preprocess)
    assert bits[0] == 1 and bits[1] < 1
