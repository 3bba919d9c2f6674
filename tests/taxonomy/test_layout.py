"""Layouts: relatives side by side, no two ends on one spot."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets
from fsviz.taxonomy import class_distances, collapse, split_dag
from fsviz.taxonomy.layout import class_order, layered, radial


@pytest.fixture(scope="module")
def dag():
    return collapse(split_dag(datasets.load("tiered_imagenet"), "test"))


def test_the_order_of_the_taxonomy_puts_close_classes_side_by_side(dag) -> None:
    distances = class_distances(dag)
    order = class_order(dag)
    assert sorted(order) == list(range(160))
    neighbours = distances[order[:-1], order[1:]].mean()
    shuffled = np.random.default_rng(0).permutation(160)
    assert neighbours < 0.5 * distances[shuffled[:-1], shuffled[1:]].mean()


@pytest.mark.parametrize("layout", [radial, layered])
def test_every_visible_node_has_a_place_of_its_own(dag, layout) -> None:
    for deepest in (1, 3, int(dag.depth.max())):
        shown = np.flatnonzero(dag.depth <= deepest)
        xy = layout(dag, shown)
        assert xy.shape == (len(shown), 2)
        assert np.isfinite(xy).all()
        assert len(np.unique(xy.round(6), axis=0)) == len(shown)


def test_ends_lie_on_one_circle(dag) -> None:
    shown = np.arange(len(dag))
    radius = np.linalg.norm(radial(dag, shown), axis=1)
    assert np.allclose(radius[dag.leaves], dag.depth.max())
    assert radius[0] == 0
