from __future__ import annotations

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.records import PAD
from fsviz.sampling import SAMPLERS, Pool
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
    second = sample_variable(IMAGE_CLASS_IDS, np.arange(10), 5, seed=4)
    assert (first.support == again.support).all()
    assert first.support.shape != second.support.shape or (first.support != second.support).any()


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


# Following a hierarchy ------------------------------------------------------------------------------------------

CONCEPTS = np.zeros((5, 30), dtype=bool)  # of 30 classes with 20 images each
CONCEPTS[0] = True
CONCEPTS[1, :12], CONCEPTS[2, 12:20], CONCEPTS[3, 20:25], CONCEPTS[4, 26:] = True, True, True, True  # the last: 4


def drawn_from(n_tasks: int = 3000, concepts: np.ndarray = CONCEPTS, **more: object) -> list[frozenset[int]]:
    """The classes of every task."""
    of_image = np.repeat(np.arange(30), 20)
    tasks = sample_variable(of_image, np.arange(30), n_tasks, seed=2, concepts=concepts, **more)  # type: ignore[arg-type]
    return [frozenset(row[row != PAD].tolist()) for row in tasks.class_ids]


def test_a_task_has_all_classes_of_a_concept_and_every_eligible_one_is_as_likely() -> None:
    tasks = drawn_from()
    counts = [sum(task == set(np.flatnonzero(row)) for task in tasks) for row in CONCEPTS]
    assert counts[4] == 0 and sum(counts) == 3000  # four classes are too few for a task
    assert sum((n - 750) ** 2 / 750 for n in counts[:4]) < 16.3  # chi-square, 3 degrees of freedom, p = 0.001


def test_a_concept_of_more_classes_than_a_task_may_have_gives_some_of_them_and_one_too_large_none() -> None:
    tasks = drawn_from(4000, limits=VariableLimits(max_way=10, max_concept=20))
    assert {len(task) for task in tasks} == {10, 8, 5}  # ten of twelve, all eight, all five; never of all thirty
    often = np.bincount([c for task in tasks if len(task) == 10 for c in task], minlength=30)
    assert often[12:].sum() == 0 and abs(often[:12] / often[:12].sum() - 1 / 12).max() < 0.01


def test_groups_of_one_level_give_a_uniform_number_of_their_classes() -> None:
    tasks = drawn_from(6000, CONCEPTS[1:], two_levels=True)
    ways = np.bincount([len(task) for task in tasks if max(task) < 12])[5:]  # of the concept of twelve
    assert len(ways) == 8 and ((ways - ways.mean()) ** 2 / ways.mean()).sum() < 24.3  # 7 degrees of freedom, p = 0.001
    assert abs(ways.sum() / 6000 - 1 / 3) < 0.03
    assert {len(task) for task in tasks if min(task) >= 20} == {5}
    assert all(any(task <= set(np.flatnonzero(row)) for row in CONCEPTS[1:4]) for task in tasks)


def test_classes_without_two_images_do_not_count_towards_a_concept() -> None:
    of_image = np.repeat(np.arange(30), np.where(np.arange(30) == 24, 1, 20))  # class 24: then the third has four
    tasks = sample_variable(of_image, np.arange(30), 200, seed=0, concepts=CONCEPTS[2:4])
    assert set(tasks.class_ids.ravel().tolist()) - {PAD} == set(range(12, 20))


def test_classes_in_no_eligible_concept_are_named_and_no_concept_is_an_error() -> None:
    pool = Pool(np.arange(30), image_class_ids=np.repeat(np.arange(30), 20), concepts=CONCEPTS[1:])
    excluded = SAMPLERS["variable"].excluded
    assert excluded is not None and excluded(pool) == {}
    outside = excluded(pool, follow_hierarchy=True)
    assert sorted(outside) == [25, 26, 27, 28, 29]
    assert outside[25] == "Class 25 is in no concept of 5 to 392 classes with two images or more."
    assert sorted(excluded(pool, follow_hierarchy=True, min_way=4)) == [25]
    with pytest.raises(BadInput, match=r"No concept of the taxonomy has 5 to 392 classes.*Lower min_way"):
        drawn_from(5, CONCEPTS[4:])
    assert len(drawn_from(5, CONCEPTS[4:], limits=VariableLimits(min_way=4))) == 5  # the advice works
