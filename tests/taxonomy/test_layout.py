"""Layouts: relatives side by side, no two ends on one spot."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets
from fsviz.taxonomy import class_distances, collapse, split_dag
from fsviz.taxonomy.layout import class_order, layered, radial


@pytest.fixture(scope="module", params=["shortest_path", "all_paths"])
def dag(request: pytest.FixtureRequest):
    return collapse(split_dag(datasets.load("tiered_imagenet"), "test", request.param))


def test_the_order_of_the_taxonomy_puts_close_classes_side_by_side(dag) -> None:
    distances = class_distances(dag)
    order = class_order(dag)
    assert sorted(order) == list(range(160))
    neighbours = distances[order[:-1], order[1:]].mean()
    shuffled = np.random.default_rng(0).permutation(160)
    assert neighbours < 0.5 * distances[shuffled[:-1], shuffled[1:]].mean()


@pytest.mark.parametrize("layout", [radial, layered])
def test_every_visible_node_has_a_place_of_its_own(dag, layout) -> None:
    for deepest in (1, 3, int(dag.tree_depth.max())):
        visible = np.flatnonzero(dag.tree_depth <= deepest)
        xy = layout(dag, visible)
        assert xy.shape == (len(visible), 2)
        assert np.isfinite(xy).all()
        assert len(np.unique(xy.round(6), axis=0)) == len(visible)


def test_no_child_lies_nearer_to_the_root_than_its_tree_parent(dag) -> None:
    visible = np.arange(len(dag))
    radius = np.linalg.norm(radial(dag, visible), axis=1)
    assert (radius[1:] > radius[dag.tree_parent[1:]]).all()


def test_a_class_with_several_parents_stands_beside_its_nearest_relatives() -> None:
    demo = datasets.load("demo")
    names = demo.classes["class_name"].to_numpy()[class_order(split_dag(demo, "all"))].tolist()
    at = names.index("dog")
    assert {"fox", "wolf"} <= set(names[at - 2 : at + 3])


def test_ends_lie_on_one_circle(dag) -> None:
    visible = np.arange(len(dag))
    radius = np.linalg.norm(radial(dag, visible), axis=1)
    assert np.allclose(radius[dag.class_nodes], dag.tree_depth.max())
    assert radius[0] == 0
