"""The spanning graph: which nodes it keeps, what it counts, and which taxonomies it refuses."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.taxonomy import class_distances, collapse, maps, span, split_dag
from fsviz.taxonomy.dag import branch
from fsviz.taxonomy.hierarchy import class_hierarchy


def edges(*pairs: str) -> pd.DataFrame:
    """edges("dog<animal") is one edge from dog up to animal."""
    return pd.DataFrame([pair.split("<") for pair in pairs], columns=["child", "parent"])


FARM = edges("dog<animal", "cat<animal", "animal<thing", "cup<vessel", "vessel<object", "object<thing")


def random_taxonomy(seed: int, n: int = 40) -> tuple[pd.DataFrame, list[str]]:
    """A random graph from one root: every node has one to three parents among the earlier nodes."""
    rng = np.random.default_rng(seed)
    rows = [(f"n{c}", f"n{p}") for c in range(1, n) for p in set(rng.integers(0, c, rng.integers(1, 4)))]
    table = pd.DataFrame(rows, columns=["child", "parent"])
    leaves = sorted(set(table["child"]) - set(table["parent"]))
    return table, leaves


def test_counts_are_the_images_of_the_classes_below() -> None:
    dag = span(FARM, ["dog", "cat", "cup"], np.array([10, 30, 20]))
    counts = dict(zip(dag.nodes, dag.counts.tolist(), strict=True))
    assert counts == {"thing": 60, "animal": 40, "object": 20, "vessel": 20, "dog": 10, "cat": 30, "cup": 20}
    assert dag.nodes[0] == "thing"
    assert [dag.nodes[v] for v in dag.path_to(dag.class_nodes[2])] == ["thing", "object", "vessel", "cup"]


def test_classes_may_lie_inside_the_tree() -> None:
    dag = span(FARM, ["animal", "dog"], np.array([5, 10]))
    assert dag.counts[dag.nodes.index("animal")] == 15


def test_collapsing_removes_tunnels_and_keeps_classes() -> None:
    dag = collapse(span(FARM, ["dog", "cat", "cup"], np.ones(3)))
    assert set(dag.nodes) == {"thing", "animal", "dog", "cat", "cup"}
    assert dag.n_edges == 4
    inside = collapse(span(FARM, ["animal", "dog"], np.ones(2)))
    assert set(inside.nodes) == {"thing", "animal", "dog"}  # animal has one parent and one child, but is a class


def test_two_tunnels_side_by_side_leave_one_edge() -> None:
    dag = collapse(span(edges("a<l", "a<r", "l<root", "r<root", "b<root"), ["a", "b"], np.ones(2), "all_paths"))
    assert set(dag.nodes) == {"root", "a", "b"}
    assert dag.n_edges == 2


def test_the_first_parent_found_from_the_root_wins() -> None:
    table = edges("near<root", "far<root", "deep<far", "x<deep", "x<near", "y<near", "z<deep")
    dag = span(table, ["x", "y"], np.ones(2))
    assert set(dag.nodes) == {"root", "near", "x", "y"}
    everything = span(table, ["x", "y"], np.ones(2), "all_paths")
    assert set(everything.nodes) == {"root", "near", "far", "deep", "x", "y"}
    # deep lies on the path of z, and then every edge among the kept nodes is there, also deep-x
    with_z = span(table, ["x", "y", "z"], np.ones(3))
    pairs = {(with_z.nodes[p], with_z.nodes[c]) for p, c in zip(with_z.parents, with_z.children, strict=True)}
    assert ("deep", "x") in pairs
    assert ("near", "x") in pairs


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["shortest_path", "all_paths"])
def test_a_random_graph_agrees_with_networkx(seed: int, mode: str) -> None:
    table, leaves = random_taxonomy(seed)
    weights = np.random.default_rng(seed).integers(1, 50, len(leaves)).astype(float)
    dag = span(table, leaves, weights, mode)
    graph = nx.DiGraph()
    graph.add_nodes_from(dag.nodes)
    graph.add_edges_from((dag.nodes[p], dag.nodes[c]) for p, c in zip(dag.parents, dag.children, strict=True))
    assert nx.is_directed_acyclic_graph(graph)
    depth = nx.single_source_shortest_path_length(graph, "n0")
    assert dict(zip(dag.nodes, dag.depth.tolist(), strict=True)) == depth
    for v, node in enumerate(dag.nodes):
        below = (nx.descendants(graph, node) | {node}) & set(leaves)
        assert dag.counts[v] == sum(weights[leaves.index(leaf)] for leaf in below)
    whole = nx.DiGraph(list(zip(table["parent"], table["child"], strict=True)))
    if mode == "all_paths":
        assert set(dag.nodes) == set().union(*(nx.ancestors(whole, leaf) for leaf in leaves)) | set(leaves)
    for leaf in leaves:  # a shortest path of the whole graph is kept
        assert depth[leaf] == nx.shortest_path_length(whole, "n0", leaf)
    assert np.array_equal(collapse(dag).counts[0], dag.counts[0])


def test_the_published_graph_of_tiered_imagenet() -> None:
    dag = split_dag(datasets.load("tiered_imagenet"), "test")
    small = collapse(dag)
    assert (len(small), small.n_edges, len(small.leaves)) == (233, 235, 160)
    assert small.names[0] == "entity"
    assert set(small.leaves) == set(small.class_nodes)


PETS = edges(
    *("pet<animal", "plant<life", "animal<life", "mammal<animal", "carnivore<mammal", "canine<carnivore"),
    *("wolf<canine", "fox<canine", "dog<pet", "dog<canine", "goldfish<pet", "rose<plant"),
)


def test_a_class_with_several_parents_hangs_below_the_one_with_its_nearest_relatives() -> None:
    classes = ["dog", "goldfish", "rose", "wolf", "fox"]
    dag = span(PETS, classes, np.ones(5))
    path = [dag.nodes[v] for v in dag.path_to(dag.class_nodes[0])]
    assert path == ["life", "animal", "mammal", "carnivore", "canine", "dog"]
    assert dag.depth[dag.class_nodes[0]] == 3 and dag.tree_depth[dag.class_nodes[0]] == 5
    pet, canine = dag.nodes.index("pet"), dag.nodes.index("canine")
    assert dag.below[pet].sum() == 2 and dag.held[pet].sum() == 1 and dag.held[canine].sum() == 3
    # Without wolf and fox the canines are dogs alone: their nearest relative is the cat, another carnivore.
    cats = pd.concat([PETS, edges("cat<carnivore")])
    dag = span(cats, ["dog", "goldfish", "rose", "cat"], np.ones(4), "all_paths")
    assert [dag.nodes[v] for v in dag.path_to(dag.class_nodes[0])][-3:] == ["carnivore", "canine", "dog"]
    dag = span(PETS, ["dog", "goldfish", "rose"], np.ones(3), "all_paths")
    assert dag.nodes[dag.tree_parent[dag.class_nodes[0]]] == "pet"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["shortest_path", "all_paths"])
def test_every_class_hangs_in_one_place_and_counts_add_up(seed: int, mode: str) -> None:
    table, leaves = random_taxonomy(seed)
    dag = span(table, leaves, np.ones(len(leaves)), mode)
    for tree in (dag, collapse(dag)):
        parents = {(int(p), int(c)) for p, c in zip(tree.parents, tree.children, strict=True)}
        assert all((int(tree.tree_parent[v]), v) in parents for v in range(1, len(tree)))
        held = tree.held.sum(axis=1)
        for v in range(len(tree)):
            own = int((tree.class_nodes == v).sum())
            assert held[v] == own + held[1:][tree.tree_parent[1:] == v].sum()
        assert held[0] == len(leaves) and not (tree.held & ~tree.below).any()
        assert np.array_equal(tree.tree_depth, [len(tree.path_to(v)) - 1 for v in range(len(tree))])
    for v in np.flatnonzero(dag.held.any(axis=1)):
        part = branch(dag, v)
        assert part.nodes[0] == dag.nodes[v]
        assert [part.nodes[c] for c in part.class_nodes] == [leaves[c] for c in np.flatnonzero(dag.held[v])]
        for node in range(1, len(part)):
            whole = dag.nodes.index(part.nodes[node])
            assert part.nodes[part.tree_parent[node]] == dag.nodes[dag.tree_parent[whole]]
    assert np.allclose(class_distances(dag), class_distances(collapse(dag)))


@pytest.mark.parametrize("name", ["imagenet1k", "demo", "tiered_imagenet"])
def test_trees_pictures_and_tables_count_the_same_classes(name: str) -> None:
    dataset = datasets.load(name)
    graph = maps.spanning_graph(dataset, "all")
    tree, picture = maps.concept_tree(graph), maps.class_map(graph)
    inner = [v for v in range(len(tree.ids)) if tree.n_nodes[v] > 1]
    for v in inner:
        part, positions = maps.classes_below(graph, tree.ids[v])
        assert len(positions) == tree.n_classes[v] == part.n_classes
        children = np.flatnonzero(tree.parents == v)
        assert tree.n_classes[v] == tree.n_classes[children].sum() + (tree.class_position[v] >= 0)
    boxes = class_hierarchy(dataset)
    assert dict(zip(boxes.ids, boxes.n_classes)) == dict(zip(tree.ids, tree.n_classes.tolist()))
    assert 0 not in boxes.n_classes
    counts = {tree.names[v]: int(tree.n_classes[v]) for v in inner}
    sampled = dict(zip(picture.names, picture.n_classes.tolist()))
    assert all(
        sampled[concept] == counts[concept] for concept in ("mammal", "container", "vehicle") if concept in counts
    )
    if name == "imagenet1k":
        assert counts["mammal"] == 218 and counts["carnivore"] == 158  # dogs among them


def test_df20_is_a_tree_of_1604_classes() -> None:
    dag = split_dag(datasets.load("df20"), "test")
    assert dag.n_edges == len(dag) - 1
    assert len(dag.leaves) == 1604
    kingdoms = {dag.names[v] for v in range(len(dag)) if dag.depth[v] == 1}
    assert len(kingdoms) == 3
    assert "Fungi" in kingdoms


@pytest.mark.parametrize(
    ("table", "classes", "message"),
    [
        (edges("a<b", "b<c", "c<a"), ["a"], "has a cycle.*is a"),
        (edges("a<a", "b<root"), ["a", "b"], "has a cycle"),
        (edges("a<left", "b<right"), ["a", "b"], "one root above every class.*2 roots"),
        (FARM, ["dog", "unicorn"], "'unicorn'.*no edge names"),
        (FARM, [], "Got none"),
    ],
)
def test_bad_taxonomies_are_refused_in_a_sentence(table: pd.DataFrame, classes: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        span(table, classes, np.ones(len(classes)))


def test_a_part_without_classes_may_hang_loose() -> None:
    loose = pd.concat([FARM, edges("planet<universe", "moon<planet", "planet<moon")])
    assert len(span(loose, ["dog", "cat"], np.ones(2))) == 4


def test_unknown_modes_and_missing_taxonomies_are_named() -> None:
    with pytest.raises(UnknownName, match="shortest_path"):
        span(FARM, ["dog"], np.ones(1), "shortest")
    with pytest.raises(Missing, match="has no taxonomy"):
        split_dag(datasets.load("dtd"), "test")
