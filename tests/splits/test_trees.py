"""Trees of classes: hops by hand, Ward's tree, and lines that cross."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.records import PAD
from fsviz.records.graphs import ClassTree
from fsviz.splits import trees

LINE = np.array([[0.0], [1.0], [5.0], [6.0]])  # ((0, 1), (2, 3))


def tree(shape) -> ClassTree:
    """A tree from nested tuples of class numbers."""
    parents, leaves = [PAD], {}

    def grow(part, node: int) -> None:
        for child in part:
            parents.append(node)
            if isinstance(child, tuple):
                grow(child, len(parents) - 1)
            else:
                leaves[child] = len(parents) - 1

    grow(shape, 0)
    nodes = np.array([leaves[c] for c in sorted(leaves)])
    return ClassTree(np.array(parents), np.zeros(len(parents)), nodes, ("",) * len(parents))


def test_ward_joins_neighbours_first_and_hops_count_edges() -> None:
    result = trees.ward_tree(LINE, list("abcd"))
    hops = trees.tree_hops(result)
    assert np.array_equal(hops, [[0, 2, 4, 4], [2, 0, 4, 4], [4, 4, 0, 2], [4, 4, 2, 0]])
    assert result.names[:4] == ("a", "b", "c", "d") and (np.diff(result.heights[4:]) >= 0).all()
    with pytest.raises(BadInput, match="two of them"):
        trees.ward_tree(LINE[:1], ["a"])


def test_hops_take_the_shortest_way_in_a_graph_and_classes_may_share_a_node() -> None:
    parents, children = np.array([0, 0, 1, 2, 1]), np.array([1, 2, 3, 3, 4])  # 3 has two parents
    hops = trees.graph_hops(parents, children, np.array([3, 4, 2, 3]), 5)
    assert np.array_equal(hops, [[0, 2, 1, 0], [2, 0, 3, 2], [1, 3, 0, 1], [0, 2, 1, 0]])


def test_hop_distance_by_hand() -> None:
    first = trees.tree_hops(tree(((0, 1), (2, 3))))
    same = trees.hop_distance(first, first)
    assert same.hops == same.normalised == 0 and same.chance > 0
    second = trees.tree_hops(tree((0, 1, 2, 3)))  # all two apart
    result = trees.hop_distance(first, second)
    assert result.hops == pytest.approx((0 + 0 + 4 * 2) / 6)
    mean = (2 + 2 + 4 * 4) / 6
    assert result.normalised == pytest.approx((2 * abs(2 / mean - 1) + 4 * abs(4 / mean - 1)) / 6)
    assert trees.hop_distance(3 * first, first).normalised == pytest.approx(0)
    with pytest.raises(BadInput, match="same classes"):
        trees.hop_distance(first, first[:3, :3])


def test_trees_of_the_same_shape_face_each_other_without_a_crossing() -> None:
    result = trees.tanglegram(tree(((0, 1), (2, (3, 4)))), tree((((4, 3), 2), (1, 0))))
    assert result.crossings == 0 and not result.crossing.any()
    assert np.array_equal(result.ranks[0], result.ranks[1])
    assert sorted(result.ranks[0]) == [0, 1, 2, 3, 4]


def test_one_class_that_moved_is_the_one_that_crosses() -> None:
    left = tree((((0, 1), (2, 3)), ((4, 5), (6, 7))))
    right = tree((((1,), (2, 3)), ((4, 5), (6, (7, 0)))))
    result = trees.tanglegram(left, right)
    assert np.flatnonzero(result.crossing).tolist() == [0] and result.crossings > 0
    inner = result.middles[0]
    assert inner[0] == pytest.approx((inner[1] + inner[np.flatnonzero(left.parents == 0)[1]]) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_longest_rise_is_as_long_as_that_of_all_subsets(seed: int) -> None:
    values = np.random.default_rng(seed).permutation(8)
    rise = trees.longest_rise(values)
    assert (np.diff(values[rise]) > 0).all() and (np.diff(rise) > 0).all()
    longest = max(
        k
        for k in range(1, 9)
        for part in itertools.combinations(values, k)
        if all(a < b for a, b in itertools.pairwise(part))
    )
    assert len(rise) == longest
    assert trees.count_crossings(np.arange(8), values) == sum(
        values[i] > values[j] for i in range(8) for j in range(i + 1, 8)
    )
