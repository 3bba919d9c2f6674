"""Samplers: probabilities against exact ones, extremes, balance, determinism, bad input."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from fsviz import datasets
from fsviz.difficulty.measures.coarsity import coarsity
from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from fsviz.sampling import assign_images, count_distinct, kernels, sample_semantic, sample_uniform
from fsviz.sampling.draw import stream
from fsviz.taxonomy import class_distances, split_dag

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))  # four classes on a line
MANY = np.arange(40)


@pytest.fixture(scope="module")
def tiered() -> np.ndarray:
    return class_distances(split_dag(datasets.load("tiered_imagenet"), "test"))


def random_pairs(tasks: Tasks, n_classes: int) -> np.ndarray:
    """One pair of each task, chosen at random, counted: independent of each other, so a chi-square test is exact."""
    rng = np.random.default_rng(1)
    columns = np.stack([rng.choice(tasks.n_way, 2, replace=False) for _ in range(len(tasks))])
    pair = np.sort(np.take_along_axis(tasks.class_ids, columns, axis=1), axis=1)
    flat = np.bincount(pair[:, 0] * n_classes + pair[:, 1], minlength=n_classes**2)
    return flat.reshape(n_classes, n_classes)[np.triu_indices(n_classes, 1)]


@pytest.mark.parametrize("sampler", ["uniform", "semantic"])
def test_without_alpha_and_beta_every_pair_is_equally_likely(sampler: str, tiered) -> None:
    if sampler == "uniform":
        tasks = sample_uniform(MANY, 5, 20_000, 3)
    else:
        tasks = sample_semantic(tiered[:40, :40], MANY, 5, 20_000, 0.0, 0.0, 3)
    assert chisquare(random_pairs(tasks, 40)).pvalue > 0.001


def exact_pairs(weights: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Probability of every pair: the first class is drawn by its weight, the second by weight times potential."""
    potential = np.exp(-cost)
    np.fill_diagonal(potential, 0)
    first = weights / weights.sum()
    second = weights * potential
    second /= second.sum(axis=1, keepdims=True)
    ordered = first[:, None] * second
    return (ordered + ordered.T)[np.triu_indices(len(cost), 1)]


def test_pairs_follow_the_potential() -> None:
    potential = np.zeros((4, kernels.COLUMNS))
    potential[:, :4] = np.exp(-0.7 * LINE)
    np.fill_diagonal(potential, 0)
    sampled = kernels.draw_semantic(potential, 0.7 * LINE, 0.0, 4, 2, 40_000, stream(0, 1))
    counts = [(sampled == pair).all(axis=1).sum() for pair in combinations(range(4), 2)]
    assert chisquare(counts, 40_000 * exact_pairs(np.ones(4), 0.7 * LINE)).pvalue > 0.001


def test_the_second_task_is_penalised_by_occurrences() -> None:
    """After one task, classes it held have occ 2 = max, the others 1: their weight is exp(-beta / 2) smaller."""
    beta, cost = 1.5, 0.7 * LINE
    potential = np.zeros((4, kernels.COLUMNS))
    potential[:, :4] = np.exp(-cost)
    np.fill_diagonal(potential, 0)
    seconds = []
    for seed in range(6000):
        first, second = kernels.draw_semantic(potential, cost, beta, 4, 2, 2, stream(seed, 1))
        if first.tolist() == [0, 1]:
            seconds.append(tuple(second.tolist()))
    expected = exact_pairs(np.exp(-beta * np.array([2, 2, 1, 1]) / 2), cost)
    counts = [seconds.count(pair) for pair in combinations(range(4), 2)]
    assert len(seconds) > 1000
    assert chisquare(counts, len(seconds) * expected).pvalue > 0.001


def test_weights_that_underflow_as_products_are_still_exact() -> None:
    """Six pairs of twins far apart: exp(-alpha D) is 0 in doubles, but a task must still be made of whole pairs."""
    distances = np.full((12, 12), 50.0)
    for twin in range(0, 12, 2):
        distances[twin, twin + 1] = distances[twin + 1, twin] = 0.01
    np.fill_diagonal(distances, 0)
    tasks = sample_semantic(distances, np.arange(12), 4, 400, 100.0, 100.0, 0)
    pairs = tasks.class_ids // 2
    assert np.array_equal(pairs[:, 0], pairs[:, 1])
    assert np.array_equal(pairs[:, 2], pairs[:, 3])
    # every one of the 15 pairs of twin pairs comes up, about equally often before repeats are dropped
    assert count_distinct(tasks.class_ids) == 15
    wide = sample_semantic(distances, np.arange(12), 11, 50, 10_000.0, 10_000.0, 0)
    assert all(len(set(row)) == 11 for row in wide.class_ids.tolist())


def test_a_strong_balance_is_exact_from_the_first_tasks() -> None:
    """With beta 10,000 no class is drawn again before every class was drawn once: weights span exp(-5000)."""
    zeros = np.zeros((30, 30))
    potential = np.zeros((30, 2 * kernels.COLUMNS))
    potential[:, :30] = 1 - np.eye(30)
    sampled = kernels.draw_semantic(potential, zeros, 10_000.0, 30, 3, 100, stream(5, 1))
    for start in range(0, 100, 10):
        assert sorted(sampled[start : start + 10].ravel().tolist()) == list(range(30))


def test_a_larger_alpha_lowers_the_median_coarsity(tiered) -> None:
    ids = np.arange(160)
    medians = [
        np.median(coarsity(tiered, sample_semantic(tiered, ids, 5, 2000, alpha, 100.0, 0).class_ids))
        for alpha in (0.0, 0.15, 0.383, 0.8)
    ]
    assert all(a > b + 3 for a, b in pairwise(medians))


def test_a_larger_beta_flattens_class_counts(tiered) -> None:
    """Before repeats are dropped, which undoes a little of the balance, and after."""
    potential = np.exp(-0.383 * tiered)
    np.fill_diagonal(potential, 0)
    sampled, saved = [], []
    for beta in (0.0, 10.0, 100.0):
        tasks = kernels.draw_semantic(potential, 0.383 * tiered, beta, 160, 5, 10_000, stream(0, 1))
        sampled.append(np.bincount(tasks.ravel(), minlength=160).std())
        tasks = sample_semantic(tiered, np.arange(160), 5, 5000, 0.383, beta, 0).class_ids
        saved.append(np.bincount(tasks.ravel(), minlength=160).std())
    assert sampled[0] > 3 * sampled[1] > 6 * sampled[2]
    assert saved[0] > 2 * saved[2]


def test_tasks_hold_different_classes_and_no_set_twice(tiered) -> None:
    ids = np.arange(160) + 1000
    for tasks in (sample_uniform(ids, 5, 3000, 1), sample_semantic(tiered, ids, 5, 3000, 0.383, 100.0, 1)):
        assert tasks.class_ids.shape == (3000, 5)
        assert np.all(np.diff(tasks.class_ids, axis=1) > 0)
        assert set(np.unique(tasks.class_ids)) <= set(ids)
        assert count_distinct(tasks.class_ids) == 3000


def test_when_sets_run_out_all_are_kept_and_repeats_fill_the_rest() -> None:
    tasks = sample_uniform(np.arange(5), 3, 200, 0)
    assert len(tasks) == 200
    assert count_distinct(tasks.class_ids) == 10
    assert len(sample_uniform(np.arange(5), 5, 7, 0)) == 7


def test_hundred_way_tasks_on_1604_classes() -> None:
    distances = class_distances(split_dag(datasets.load("df20"), "test"))
    tasks = sample_semantic(distances, np.arange(1604), 100, 150, 0.383, 100.0, 0)
    assert all(len(set(row)) == 100 for row in tasks.class_ids.tolist())


def test_a_seed_means_the_same_tasks_everywhere() -> None:
    """Written-out values: they may not change with numpy, numba or the machine."""
    uniform = sample_uniform(np.arange(10), 3, 4, 7)
    semantic = sample_semantic(LINE, np.arange(4), 2, 4, 0.5, 2.0, 7)
    dealt = assign_images(uniform.take(slice(0, 2)), np.repeat(np.arange(10), 5), 1, 2, 7)
    assert uniform.class_ids.tolist() == UNIFORM
    assert semantic.class_ids.tolist() == SEMANTIC
    assert dealt.support.tolist() == SUPPORT
    assert dealt.query.tolist() == QUERY
    line = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    assert sample_semantic(line, MANY, 5, 300, 0.383, 100.0, 7).class_ids[-1].tolist() == LAST_OF_300


UNIFORM = [[2, 7, 9], [0, 3, 4], [2, 3, 6], [1, 7, 8]]
SEMANTIC = [[2, 3], [0, 1], [0, 2], [1, 3]]
SUPPORT = [[[13], [38], [46]], [[2], [15], [24]]]
LAST_OF_300 = [22, 23, 26, 28, 31]
QUERY = [[[11, 12], [35, 39], [48, 45]], [[3, 0], [18, 19], [21, 20]]]


def test_other_seeds_give_other_tasks() -> None:
    a, b = sample_uniform(MANY, 5, 100, 0), sample_uniform(MANY, 5, 100, 1)
    assert not np.array_equal(a.class_ids, b.class_ids)


def test_images_are_dealt_evenly_and_never_twice_in_a_task() -> None:
    tasks = sample_uniform(np.arange(8), 4, 300, 0)
    sizes = np.array([7, 9, 11, 13, 20, 30, 7, 8])
    of_image = np.random.default_rng(0).permutation(np.repeat(np.arange(8), sizes))
    dealt = assign_images(tasks, of_image, 2, 5, 0)
    assert dealt.support.shape == (300, 4, 2)
    assert dealt.query.shape == (300, 4, 5)
    images = np.concatenate([dealt.support, dealt.query], axis=2)
    assert np.array_equal(of_image[images], np.broadcast_to(tasks.class_ids[:, :, None], images.shape))
    assert np.all(np.diff(np.sort(images, axis=2), axis=2) > 0)
    uses = np.bincount(images.ravel(), minlength=len(of_image))
    for c in range(8):
        assert np.ptp(uses[of_image == c]) <= 1
    # an image is support as often as its share of the hand
    share = np.bincount(dealt.support.ravel(), minlength=len(of_image)).sum() / uses.sum()
    assert np.isclose(share, 2 / 7)


def test_padding_gets_no_images() -> None:
    tasks = Tasks(np.array([[0, 1, 2], [1, 2, PAD]]))
    dealt = assign_images(tasks, np.repeat(np.arange(3), 4), 1, 2, 0)
    assert np.all(dealt.support[1, 2] == PAD)
    assert np.all(dealt.query[1, 2] == PAD)
    assert np.all(dealt.query[1, :2] != PAD)


def test_images_marked_unusable_are_never_dealt() -> None:
    of_image = np.repeat(np.arange(3), 6)
    of_image[[0, 7, 17]] = PAD
    dealt = assign_images(sample_uniform(np.arange(3), 2, 50, 0), of_image, 1, 3, 0)
    assert not np.isin(dealt.query, [0, 7, 17]).any()
    assert not np.isin(dealt.support, [0, 7, 17]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_way": 5}, "n_way must be at most 4.*Got 5"),
        ({"n_way": 1}, "n_way must be a whole number from 2 to 1,000"),
        ({"n_way": 2.5}, "n_way must be a whole number"),
        ({"n_tasks": 0}, "n_tasks must be a whole number from 1 to 1,000,000"),
        ({"n_tasks": 10**9}, "n_tasks must be a whole number from 1 to 1,000,000"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2,147,483,647"),
        ({"alpha": -0.1}, "alpha must be a number from 0 to 10,000. Got -0.1"),
        ({"alpha": float("nan")}, "alpha must be a number"),
        ({"alpha": 1e12}, "alpha must be a number from 0 to 10,000"),
        ({"beta": -1.0}, "beta must be a number from 0 to 10,000"),
        ({"beta": float("inf")}, "beta must be a number"),
        ({"distances": LINE[:3, :3]}, "one row and column per class, 4 x 4"),
        ({"distances": LINE - 1}, "not negative"),
        ({"distances": LINE + np.triu(LINE)}, "symmetric"),
        ({"distances": LINE + np.inf}, "finite"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change: dict, message: str) -> None:
    good = {
        "distances": LINE,
        "class_ids": np.arange(4),
        "n_way": 2,
        "n_tasks": 5,
        "alpha": 1.0,
        "beta": 1.0,
        "seed": 0,
    }
    with pytest.raises(BadInput, match=message):
        sample_semantic(**(good | change))


def test_too_few_images_are_named() -> None:
    tasks = sample_uniform(np.arange(3), 2, 5, 0)
    with pytest.raises(BadInput, match=r"Class . has 5 images; n_shot \+ n_query needs 6"):
        assign_images(tasks, np.repeat(np.arange(3), 5), 1, 5, 0)
    with pytest.raises(BadInput, match="n_query must be a whole number from 1"):
        assign_images(tasks, np.repeat(np.arange(3), 5), 1, 0, 0)


def test_with_repeats_a_draw_is_the_beginning_of_a_longer_one() -> None:
    few, many = (sample_semantic(LINE, np.arange(4), 2, n, 2.0, 2.0, 7, repeats=True) for n in (10, 200))
    assert np.array_equal(few.class_ids, many.class_ids[:10])
    assert count_distinct(many.class_ids) <= 6  # of four classes there are six pairs: repeats are kept
    few, many = (sample_uniform(MANY, 5, n, 3, repeats=True) for n in (10, 200))
    assert np.array_equal(few.class_ids, many.class_ids[:10])
