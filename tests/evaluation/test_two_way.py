"""Errors on every pair of classes at once: equal to ProtoNet on the two-way tasks, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import evaluation
from fsviz.errors import BadInput
from fsviz.records import Features, Tasks
from fsviz.sampling import assign_images


def five_classes(apart: float = 0.4, scale: float = 1.0) -> Features:
    rng = np.random.default_rng(4)
    class_ids = np.repeat(np.arange(5), 20)
    values = 30 + scale * (apart * rng.normal(size=(5, 12))[class_ids] + rng.normal(size=(100, 12)))
    return Features("toy", "none", values.astype(np.float32), np.arange(100), class_ids)


def tasks_of(features: Features, n_tasks: int, n_shot: int = 3, n_query: int = 6) -> Tasks:
    of_image = features.image_class_ids(100)
    return assign_images(Tasks(np.tile(np.arange(5), (n_tasks, 1))), of_image, n_shot, n_query, seed=1)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_errors_are_those_of_protonet_on_the_tasks_of_every_pair(scale: float) -> None:
    features = five_classes(scale=scale)
    tasks = tasks_of(features, 12)
    errors, ci95 = evaluation.two_way_errors(features, tasks)
    assert np.isnan(np.diag(errors)).all() and np.array_equal(errors, errors.T, equal_nan=True)
    for a, b in [(0, 1), (1, 4), (2, 3)]:
        ways = [a, b]
        pair = Tasks(tasks.class_ids[:, ways], tasks.support[:, ways], tasks.query[:, ways])
        wrong = 1 - evaluation.task_accuracy(evaluation.evaluate(features, pair, "protonet"))
        assert wrong.mean() > 0 and errors[a, b] == pytest.approx(wrong.mean(), abs=1e-12)
        assert ci95[a, b] == pytest.approx(1.96 * wrong.std(ddof=1) / np.sqrt(12))


def test_classes_that_nothing_tells_apart_are_wrong_half_of_the_time() -> None:
    features = five_classes()
    same = Features("toy", "none", np.ones_like(features.values), features.image_ids, features.class_ids)
    errors, _ = evaluation.two_way_errors(same, tasks_of(same, 3))
    assert errors[0, 1] == 0.5


def test_few_tasks_have_no_interval_and_all_tasks_hold_the_same_classes() -> None:
    features = five_classes()
    assert np.isnan(evaluation.two_way_errors(features, tasks_of(features, 2))[1]).all()
    tasks = tasks_of(features, 3)
    mixed = Tasks(tasks.class_ids[:, ::-1].copy(), tasks.support, tasks.query)
    mixed.class_ids[0] = tasks.class_ids[0]
    with pytest.raises(BadInput, match="same classes"):
        evaluation.two_way_errors(features, mixed)
