"""Distances between classes: a hand-computed example, properties on random graphs, the published numbers."""

from __future__ import annotations

from itertools import combinations
from math import log

import networkx as nx
import numpy as np
import pytest

from fsviz import datasets
from fsviz.difficulty.measures.coarsity import coarsity
from fsviz.errors import BadInput, UnknownName
from fsviz.taxonomy import DISTANCES, class_distances, collapse, lowest_superordinate, span, split_dag
from tests.sources import ROOT
from tests.taxonomy.test_dag import edges, random_taxonomy

# thing (100 images) holds animal (40: dog 10, cat 30) and object (60: cup 20, car 40)
FOUR = edges("dog<animal", "cat<animal", "animal<thing", "cup<object", "car<object", "object<thing")
CLASSES, COUNTS = ["dog", "cat", "cup", "car"], np.array([10, 30, 20, 40])


@pytest.fixture(scope="module")
def four():
    return span(FOUR, CLASSES, COUNTS)


def test_jiang_conrath_by_hand(four) -> None:
    far = 2 * log(100)
    expected = np.array(
        [
            [0, 2 * log(40) - log(300), far - log(200), far - log(400)],
            [0, 0, far - log(600), far - log(1200)],
            [0, 0, 0, 2 * log(60) - log(800)],
            [0, 0, 0, 0],
        ]
    )
    assert np.allclose(class_distances(four), expected + expected.T)


def test_the_other_distances_by_hand(four) -> None:
    assert class_distances(four, "path_length").tolist() == [[0, 2, 4, 4], [2, 0, 4, 4], [4, 4, 0, 2], [4, 4, 2, 0]]
    # animal has depth 2, dog and cat 3: 1 - 2*2/6; through the root 1 - 2*1/6
    assert np.allclose(class_distances(four, "wu_palmer")[0], [0, 1 / 3, 2 / 3, 2 / 3])
    lin = class_distances(four, "lin")
    assert np.isclose(lin[0, 1], 1 - 2 * log(0.4) / (log(0.1) + log(0.3)))
    assert np.isclose(lin[0, 2], 1)


def test_coarsity_by_hand(four) -> None:
    distances = class_distances(four)
    d, e, f = distances[0, 1], distances[0, 2], distances[1, 2]
    assert np.isclose(coarsity(distances, np.array([0, 1, 2])), (d**2 + e**2 + f**2) / 3)
    tasks = np.array([[0, 1, 2], [3, 1, -1]])  # the second has two classes, and padding
    assert np.allclose(coarsity(distances, tasks), [(d**2 + e**2 + f**2) / 3, distances[1, 3] ** 2])
    with pytest.raises(BadInput, match="at least 2"):
        coarsity(distances, np.array([2]))


def test_coarsity_of_many_wide_tasks_equals_one_by_one() -> None:
    rng = np.random.default_rng(0)
    distances = rng.random((300, 300))
    distances = distances + distances.T
    np.fill_diagonal(distances, 0)
    tasks = np.stack([rng.choice(300, 100, replace=False) for _ in range(450)])
    squared = [(distances[np.ix_(t, t)] ** 2).sum() / (100 * 99) for t in tasks]
    assert np.allclose(coarsity(distances, tasks), squared)


@pytest.mark.parametrize("name", [name for name, kind in DISTANCES.items() if kind.needs == "taxonomy"])
@pytest.mark.parametrize("seed", range(4))
def test_every_distance_is_symmetric_positive_and_zero_only_on_the_diagonal(name: str, seed: int) -> None:
    table, leaves = random_taxonomy(seed)
    dag = span(table, leaves, np.random.default_rng(seed).integers(1, 50, len(leaves)))
    distances = class_distances(dag, name)
    assert np.array_equal(distances, distances.T)
    assert np.all(np.diag(distances) == 0)
    assert np.all(distances[~np.eye(len(leaves), dtype=bool)] > 0)
    if name in ("wu_palmer", "lin"):
        assert distances.max() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_the_lowest_superordinate_has_the_smallest_count_of_all_common_ancestors(seed: int) -> None:
    table, leaves = random_taxonomy(seed)
    weights = np.random.default_rng(seed).integers(1, 50, len(leaves)).astype(float)
    dag = span(table, leaves, weights, "all_paths")
    distances = class_distances(dag)
    for a in range(len(leaves)):
        for b in range(a):
            smallest = min(dag.counts[v] for v in range(len(dag)) if dag.below[v, a] and dag.below[v, b])
            assert np.isclose(distances[a, b], 2 * log(smallest) - log(weights[a]) - log(weights[b]))
    selection = [0, len(leaves) // 2, len(leaves) - 1]
    node = lowest_superordinate(dag, selection)
    assert dag.below[node, selection].all()
    assert dag.counts[node] == min(dag.counts[v] for v in range(len(dag)) if dag.below[v, selection].all())


def test_more_paths_bring_classes_closer_on_average_and_tunnels_change_nothing() -> None:
    dataset = datasets.load("tiered_imagenet")
    short, full = split_dag(dataset, "test"), split_dag(dataset, "test", "all_paths")
    assert (class_distances(full) - class_distances(short)).mean() < 0
    assert np.array_equal(class_distances(collapse(short)), class_distances(short))


def test_distances_equal_the_authors_procedure_on_networkx() -> None:
    """One shortest path per class, the graph they induce, the lowest common ancestor, the classes it spans."""
    dataset = datasets.load("mini_imagenet")
    whole = nx.DiGraph(zip(dataset.taxonomy["parent"], dataset.taxonomy["child"], strict=True))
    table = dataset.classes.loc[dataset.split_class_ids("test")]
    leaves = table["node"].tolist()
    graph = whole.subgraph({node for leaf in leaves for node in nx.shortest_path(whole, "n00001740", leaf)})
    expected = np.zeros((20, 20))
    for (i, a), (j, b) in combinations(enumerate(leaves), 2):
        ancestor = nx.lowest_common_ancestor(graph, a, b)
        expected[i, j] = expected[j, i] = 2 * log(len(nx.descendants(graph, ancestor) & set(leaves)))
    distances = class_distances(split_dag(dataset, "test"))
    assert np.allclose(distances, expected)
    names = {name: i for i, name in enumerate(table["class_name"])}
    assert distances[names["bookshop"], names["scoreboard"]] == pytest.approx(1.3862943611198908)  # as published


def test_the_1604_classes_of_df20() -> None:
    distances = class_distances(split_dag(datasets.load("df20"), "test"))
    assert np.isclose(distances.max(), 2 * log(1604))  # classes of different kingdoms, all counted once
    assert np.isclose(distances[distances > 0].min(), 2 * log(2))  # two species alone in their genus


def test_empty_classes_and_unknown_distances_are_named() -> None:
    dag = span(FOUR, CLASSES, np.array([10, 0, 20, 40]))
    for name in ("jiang_conrath", "lin"):
        with pytest.raises(BadInput, match=r"needs images in every class; 'cat' has 0"):
            class_distances(dag, name)
    assert class_distances(dag, "path_length")[0, 1] == 2
    with pytest.raises(UnknownName, match="jiang_conrath"):
        class_distances(dag, "jiang")


def test_the_authors_mini_testbed_has_up_to_5_4_more_coarsity_as_readme_says() -> None:
    """Their ancestor of two classes is sought on one path each, |v| counted along all kept edges."""
    dag = split_dag(datasets.load("mini_imagenet"), "test")

    def shortest_path(node: int) -> set[int]:
        path = [node]
        while dag.depth[path[-1]]:
            up = dag.parents[dag.children == path[-1]]
            path.append(int(up[dag.depth[up].argmin()]))
        return set(path)

    paths = [shortest_path(int(node)) for node in dag.class_nodes]
    theirs = np.zeros((20, 20))
    for i, j in combinations(range(20), 2):
        counted = min(dag.counts[node] for node in paths[i] & paths[j])
        theirs[i, j] = theirs[j, i] = 2 * log(counted) - log(dag.weights[i]) - log(dag.weights[j])
    ours = class_distances(dag)
    names = {name: i for i, name in enumerate(dag.names[node] for node in dag.class_nodes)}
    dog, lion, crab = names["golden retriever"], names["lion"], names["king crab"]
    assert theirs[dog, lion] == theirs[dog, crab] and ours[dog, lion] < ours[dog, crab]
    tasks = np.array(list(combinations(range(20), 5)))
    more = coarsity(theirs, tasks) - coarsity(ours, tasks)
    dogs = [names[name] for name in ("golden retriever", "malamute", "dalmatian")]
    assert more.min() == 0 and not more[~np.isin(tasks, dogs).any(axis=1)].any()
    assert f"up to {more.max():.1f} more coarsity" in " ".join(
        (ROOT / "docs" / "explanation" / "papers.md").read_text("utf-8").split()
    )
