from __future__ import annotations

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.records import PAD
from fsviz.sampling import SAMPLERS
from fsviz.sampling.samplers.variable import VariableLimits, sample_variable, shots_and_queries

SIZES = np.array([40, 7, 200, 60, 3, 30, 120, 25, 80, 50])
IMAGE_CLASS_IDS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), SIZES))


def test_tasks_keep_the_rules_of_the_sampler() -> None:
    tasks = sample_variable(IMAGE_CLASS_IDS, np.arange(10), 200, seed=0)
    ways = (tasks.class_ids != PAD).sum(axis=1)
    assert ways.min() == 5
    assert ways.max() == 10
    for class_ids, support, query in zip(tasks.class_ids, tasks.support, tasks.query, strict=True):
        classes = class_ids[class_ids != PAD]
        assert len(set(classes)) == len(classes)
        n_query = min(10, SIZES[classes].min() // 2)
        assert (support != PAD).sum() <= 500
        for w, class_id in enumerate(classes):
            s, q = support[w][support[w] != PAD], query[w][query[w] != PAD]
            assert len(q) == n_query
            assert len(s) >= 1
            assert len(set(s) | set(q)) == len(s) + len(q)
            assert (IMAGE_CLASS_IDS[np.concatenate([s, q])] == class_id).all()


def test_it_alone_declares_tasks_of_different_shapes() -> None:
    assert [name for name, sampler in SAMPLERS.items() if sampler.varies] == ["variable"]


def test_every_number_of_ways_is_as_likely() -> None:
    tasks = sample_variable(IMAGE_CLASS_IDS, np.arange(10), 3000, seed=1)
    counts = np.bincount((tasks.class_ids != PAD).sum(axis=1))[5:]
    assert len(counts) == 6
    assert ((counts - 500) ** 2 / 500).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001


def test_shots_follow_class_sizes_within_the_noise() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([100, 400, 100, 100, 100])
    shots = np.stack([shots_and_queries(rng, sizes, VariableLimits())[0] for _ in range(2000)])
    many = shots[shots.sum(axis=1) > 200]
    ratio = (many[:, 1] - 1) / np.maximum(many[:, 0] - 1, 1)
    assert ratio.min() >= 1 - 0.1  # 4 times the size, noise between a half and two on both sides: 1 to 16
    assert ratio.max() <= 16 + 2
    assert shots.sum(axis=1).max() <= 500
    assert 3.5 < np.median(ratio) < 4.6


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others() -> None:
    first, again = (sample_variable(IMAGE_CLASS_IDS, np.arange(10), 5, seed=3) for _ in range(2))
    other = sample_variable(IMAGE_CLASS_IDS, np.arange(10), 5, seed=4)
    assert (first.support == again.support).all()
    assert first.support.shape != other.support.shape or (first.support != other.support).any()


def test_classes_without_two_images_are_left_out_and_image_ids_are_kept() -> None:
    class_ids = np.concatenate([IMAGE_CLASS_IDS, [10]])
    image_ids = 1000 + np.arange(len(class_ids))
    tasks = sample_variable(class_ids, np.arange(11), 50, seed=0, image_ids=image_ids)
    assert 10 not in tasks.class_ids
    assert tasks.query[tasks.query != PAD].min() >= 1000


def test_bad_input_is_named() -> None:
    with pytest.raises(BadInput, match="at least 5 classes with two images"):
        sample_variable(IMAGE_CLASS_IDS, np.arange(4), 3, seed=0)
    with pytest.raises(BadInput, match="n_tasks"):
        sample_variable(IMAGE_CLASS_IDS, np.arange(10), 0, seed=0)
    with pytest.raises(BadInput, match="min_way"):
        sample_variable(IMAGE_CLASS_IDS, np.arange(10), 1, seed=0, limits=VariableLimits(min_way=60))


def test_two_hundred_tasks_of_a_large_dataset() -> None:
    class_ids = np.repeat(np.arange(300), 600)
    tasks = sample_variable(class_ids, np.arange(300), 200, seed=0)
    assert (tasks.class_ids != PAD).sum(axis=1).max() > 40
