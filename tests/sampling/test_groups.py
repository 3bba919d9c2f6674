"""Copies of a picture and frames of a video never stand on both sides of a task."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from fsviz.sampling import assign_images, sample_uniform
from fsviz.sampling.draw import max_per_side


def shares_a_group(tasks: Tasks, groups: np.ndarray) -> bool:
    """Whether some task has a group on both sides, in any of its classes."""
    for support, query in zip(tasks.support, tasks.query, strict=True):
        on_support, on_query = (set(groups[side[side != PAD]].tolist()) for side in (support, query))
        if on_support & on_query:
            return True
    return False


def check_hands(tasks: Tasks, image_class_ids: np.ndarray) -> None:
    """Every image is of its class, and comes once per task."""
    both = np.concatenate([tasks.support, tasks.query], axis=2)
    there = tasks.class_ids[:, :, None] != PAD
    assert (np.where(there, image_class_ids[both], -2) == np.where(there, tasks.class_ids[:, :, None], -2)).all()
    for hand in both.reshape(-1, both.shape[2]):
        assert len(set(hand.tolist())) == len(hand)


@pytest.mark.parametrize(("n_shot", "n_query"), [(1, 1), (5, 5), (3, 12), (10, 2)])
def test_ten_copies_of_each_picture_stay_together(n_shot: int, n_query: int) -> None:
    classes = np.repeat(np.arange(6), 80)  # eight pictures per class, ten times each
    groups = np.arange(480) // 10
    sampled = sample_uniform(np.arange(6), 3, 300, seed=1)
    apart = assign_images(sampled, classes, n_shot, n_query, seed=1, groups=groups)
    assert not shares_a_group(apart, groups)
    check_hands(apart, classes)
    assert shares_a_group(assign_images(sampled, classes, n_shot, n_query, seed=1), groups), "what happens without"
    again = assign_images(sampled, classes, n_shot, n_query, seed=1, groups=groups)
    assert np.array_equal(again.support, apart.support) and np.array_equal(again.query, apart.query)
    second = assign_images(sampled, classes, n_shot, n_query, seed=2, groups=groups)
    assert not np.array_equal(second.support, apart.support)


def test_images_are_still_used_about_equally_often() -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 60)
    groups = np.where(rng.random(240) < 0.5, rng.integers(0, 40, 240), np.arange(240) + 100)
    groups += 1000 * classes
    sampled = sample_uniform(np.arange(4), 2, 2_000, seed=0)
    tasks = assign_images(sampled, classes, 5, 10, seed=0, groups=groups)
    assert not shares_a_group(tasks, groups)
    uses = np.bincount(np.concatenate([tasks.support, tasks.query], axis=2).ravel(), minlength=240)
    mean = uses.reshape(4, 60).mean(axis=1).repeat(60)
    assert (np.abs(uses - mean) <= 0.03 * mean).all(), "each image comes about as often as any other of its class"
    as_support = np.bincount(tasks.support.ravel(), minlength=240)
    assert as_support.min() > 0.5 * as_support.mean(), "and on both sides"


def test_without_groups_the_bytes_do_not_change() -> None:
    classes = np.repeat(np.arange(5), 30)
    sampled = sample_uniform(np.arange(5), 3, 50, seed=4)
    plain = assign_images(sampled, classes, 3, 7, seed=4)
    alone = assign_images(sampled, classes, 3, 7, seed=4, groups=np.arange(150)[::-1])
    assert np.array_equal(plain.support, alone.support) and np.array_equal(plain.query, alone.query)


@pytest.mark.parametrize("seed", range(40))
def test_a_division_is_found_wherever_there_is_one(seed: int) -> None:
    """Small classes with groups of any sizes, against trying every subset of groups."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(1, 7))
    n_shot, n_query = rng.integers(1, 12, 2).tolist()
    possible = any(
        n_shot <= sum(subset) <= sizes.sum() - n_query
        for k in range(len(sizes) + 1)
        for subset in itertools.combinations(sizes.tolist(), k)
    )
    groups = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), 100 + np.arange(40)])
    classes = np.concatenate([np.zeros(sizes.sum(), int), np.ones(40, int)])
    sampled = Tasks(np.tile([0, 1], (20, 1)))
    if possible:
        tasks = assign_images(sampled, classes, n_shot, n_query, seed=seed, groups=groups)
        assert not shares_a_group(tasks, groups)
        check_hands(tasks, classes)
    else:
        with pytest.raises(BadInput, match=r"Class 'odd' has too few separate groups|n_query needs"):
            assign_images(sampled, classes, n_shot, n_query, seed=seed, groups=groups, class_names=["odd", "even"])


@pytest.mark.parametrize("seed", range(20))
def test_the_room_beside_is_the_largest_sum_of_groups_that_leaves_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, n_other = rng.integers(1, 9, rng.integers(1, 7)), int(rng.integers(1, 20))
    sums = {sum(some) for k in range(len(sizes) + 1) for some in itertools.combinations(sizes.tolist(), k)}
    assert max_per_side(sizes, n_other) == max((s for s in sums if s <= sizes.sum() - n_other), default=-1)
    assert max_per_side(np.ones(30, int), n_other) == 30 - n_other, "without groups, all the others"


def test_a_group_of_several_classes_stays_on_one_side_of_the_task() -> None:
    """Each picture is in two classes: a copy in the support of one is no query of the other."""
    classes = np.repeat(np.arange(3), 20)
    groups = np.concatenate([np.arange(20), np.arange(10, 30), np.arange(20, 30), np.arange(10)])
    sampled = Tasks(np.tile([0, 1, 2], (500, 1)))
    tasks = assign_images(sampled, classes, 4, 5, seed=0, groups=groups)
    assert not shares_a_group(tasks, groups)
    check_hands(tasks, classes)
    twins = np.concatenate([np.arange(20)] * 3)  # the three classes hold the same pictures
    tight = assign_images(sampled, classes, 8, 12, seed=0, groups=twins)
    assert not shares_a_group(tight, twins)


def test_a_class_that_is_one_group_is_named() -> None:
    classes = np.repeat(np.arange(2), 10)
    groups = np.concatenate([np.zeros(10, int), np.arange(1, 11)])
    message = r"Class 'film' has too few separate groups .* 1 \+ 1 images: its 10 images are all one group"
    with pytest.raises(BadInput, match=message):
        assign_images(Tasks(np.array([[0, 1]])), classes, 1, 1, 0, groups, ["film", "photos"])


def test_images_that_may_not_be_drawn_leave_their_groups() -> None:
    classes = np.array([0, 0, 0, PAD, PAD, 1, 1, 1])
    groups = np.array([0, 1, 2, 0, 0, 3, 4, 5])  # the copies of image 0 have no features
    sampled = Tasks(np.array([[0, 1]] * 10))
    plain = assign_images(sampled, classes, 1, 2, 0)
    assert np.array_equal(assign_images(sampled, classes, 1, 2, 0, groups).query, plain.query)
