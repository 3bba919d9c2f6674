"""Sizes and assignment as published, agreement compared with chance, splits for comparison."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.splits import assignment
from fsviz.splits.assignment import TEST, TRAIN, VAL


@pytest.mark.parametrize(
    ("n", "sizes"), [(62, (38, 12, 12)), (158, (96, 31, 31)), (608, (366, 121, 121)), (100, (60, 20, 20))]
)
def test_sizes_are_the_published_ones(n: int, sizes: tuple[int, int, int]) -> None:
    assert assignment.sizes(n) == sizes
    assert tuple(np.bincount(assignment.assign(np.random.default_rng(0).normal(size=n)))) == sizes


def test_the_lowest_goes_to_test_the_next_to_val_in_turn() -> None:
    scores = np.array([5.0, -1, 4, -2, 3, -3, 2, -4, 1, 0])  # two of ten each
    sides = assignment.assign(scores)
    assert np.flatnonzero(sides == TEST).tolist() == [3, 7]  # -4 test, -3 val, -2 test, -1 val
    assert np.flatnonzero(sides == VAL).tolist() == [1, 5]


def test_ties_are_broken_by_the_seed_alone() -> None:
    flat = [assignment.assign(np.full(50, 0.3), seed) for seed in range(40)]
    assert len({tuple(s) for s in flat}) == 40
    assert np.array_equal(assignment.assign(np.full(50, 0.3), 7), assignment.random_sides(50, 7))
    noisy = assignment.assign(np.full(50, 0.3) + 1e-9 * np.arange(50), 7)
    assert np.array_equal(noisy, flat[7])  # noise is no order
    assert assignment.agreement(np.stack(flat)) == pytest.approx(assignment.expected_agreement(50), abs=0.04)


def test_agreement_by_hand_counts_every_side() -> None:
    first = np.array([TRAIN, TRAIN, TRAIN, TRAIN, VAL, VAL, TEST, TEST])
    swapped = np.array([TRAIN, TRAIN, TRAIN, TRAIN, VAL, TEST, VAL, TEST])  # the same classes held out
    second = np.array([TEST, TRAIN, TRAIN, TRAIN, VAL, VAL, TRAIN, TEST])
    assert assignment.agreement(np.stack([first, first, first])) == 1
    assert assignment.agreement_on_test(np.stack([first, first, first])) == 1
    assert assignment.agreement(np.stack([first, swapped])) == 6 / 8
    assert assignment.agreement_on_test(np.stack([first, swapped])) == 1 / 2
    three = np.stack([first, swapped, second])
    assert assignment.agreement(three) == pytest.approx((6 + 6 + 5) / 8 / 3)
    assert assignment.agreement_on_test(three) == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    assert (
        assignment.expected_agreement(10) == pytest.approx(0.6**2 + 2 * 0.2**2)
        and assignment.expected_test_agreement(10) == 0.2
    )
    with pytest.raises(BadInput, match="two seeds"):
        assignment.agreement(first[None])


def test_a_superclass_is_on_one_side() -> None:
    groups = np.repeat(np.arange(12), [9, 3, 4, 7, 2, 5, 6, 3, 8, 4, 5, 4])
    for seed in range(20):
        sides = assignment.group_sides(groups, seed)
        assert all(len(set(sides[groups == g])) == 1 for g in range(12))
        counts = np.bincount(sides, minlength=3)
        assert (counts[[VAL, TEST]] <= 12).all() and (counts > 0).all()
    assert (np.bincount(assignment.group_sides(np.repeat([0, 1, 2], 10))) == 10).all()
    with pytest.raises(BadInput, match="three of them"):
        assignment.group_sides(np.repeat([0, 1], 10))
