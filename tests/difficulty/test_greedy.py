from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsviz.difficulty.accuracy_search import search_by_accuracy
from fsviz.difficulty.fastdiffsel import select_supports
from fsviz.difficulty.greedy import greedy_supports
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput
from fsviz.records import PAD, Tasks
from tests.difficulty.clusters import accuracy, clustered_features, query_loss, random_tasks


def naive_greedy(features, class_ids, support, query, objective: str, loss: str, scale: float, n_sweeps: int):
    """Every slot, every candidate, one loss at a time."""
    sign = 1 if objective == "hard" else -1
    support = support.copy()
    for _ in range(n_sweeps):
        for way, class_id in enumerate(class_ids):
            pool = np.setdiff1d(features.image_ids[features.class_ids == class_id], query)
            for slot in range(support.shape[1]):
                best, best_loss = support[way, slot], sign * query_loss(features, support, query, loss, scale)
                for candidate in np.setdiff1d(pool, support[way]):
                    trial = support.copy()
                    trial[way, slot] = candidate
                    trial_loss = sign * query_loss(features, trial, query, loss, scale)
                    if trial_loss > best_loss:
                        best, best_loss = candidate, trial_loss
                support[way, slot] = best
    return support


@pytest.mark.parametrize("loss, scale", [("euclidean", 0.2), ("cosine", 10.0)])
@pytest.mark.parametrize("objective, n_sweeps", [("hard", 1), ("easy", 1), ("hard", 2)])
def test_vectorised_greedy_is_the_naive_one(loss: str, scale: float, objective: str, n_sweeps: int) -> None:
    features = clustered_features(n_classes=4, n_images=12, spread=2.0)
    tasks = random_tasks(features, 3, 3, 2, 3)
    quick = greedy_supports(features, tasks, objective, SearchOptions(loss=loss, scale=scale, n_sweeps=n_sweeps))
    for t in range(len(tasks)):
        slow = naive_greedy(
            features, tasks.class_ids[t], tasks.support[t], tasks.query[t], objective, loss, scale, n_sweeps
        )
        assert (quick.support[t] == slow).all()


def test_greedy_and_fastdiffsel_find_tasks_of_similar_difficulty() -> None:
    features = clustered_features(spread=2.0, n_images=60)
    tasks = random_tasks(features, 20, 5, 3, 8)
    random = accuracy(features, tasks)
    greedy = accuracy(features, greedy_supports(features, tasks))
    fast = accuracy(features, select_supports(features, tasks))
    assert greedy < random - 0.2
    assert fast < random - 0.2
    assert abs(fast - greedy) < 0.15


@pytest.mark.parametrize("scale, shift", [(1e-6, 0), (1e6, 0), (1e20, 0), (1, 3), (1, 1000), (1, 1e4)])
def test_search_in_features_of_any_scale_and_origin_is_that_of_double_precision(scale: float, shift: float) -> None:
    whole = clustered_features(spread=2.0, dtype=np.float32)
    tasks = random_tasks(whole, 5, 5, 3, 8)
    single = replace(whole, values=whole.values * np.float32(scale) + np.float32(shift))
    double = replace(single, values=single.values.astype(np.float64))
    for search in (select_supports, search_by_accuracy, greedy_supports):
        for settings in ({}, {"objective": "easy"}, {"options": SearchOptions(loss="cosine")}):
            sets = search(single, tasks, **settings).support
            assert np.array_equal(sets, search(double, tasks, **settings).support), (search, settings)
        if shift < 1000:  # more rounds the features themselves
            assert np.array_equal(search(single, tasks).support, search(whole, tasks).support), search


def test_ragged_supports_keep_their_shape() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 2, 4, 3, 5)
    support = tasks.support.copy()
    support[0, 1, 1:] = PAD
    result = greedy_supports(features, Tasks(tasks.class_ids, support, tasks.query)).support
    assert ((result == PAD) == (support == PAD)).all()
    for t in range(2):
        assert not set(result[t].ravel()) & set(tasks.query[t].ravel())


def test_sweeps_must_be_positive() -> None:
    with pytest.raises(BadInput, match="at least one sweep"):
        SearchOptions(n_sweeps=0)
