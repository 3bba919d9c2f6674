from __future__ import annotations

import numpy as np
import pytest

from fsviz.difficulty import accuracy_search
from fsviz.difficulty.accuracy_search import search_by_accuracy
from fsviz.difficulty.fastdiffsel import select_supports
from fsviz.difficulty.greedy import greedy_supports
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput, Cancelled
from fsviz.records import PAD, Features, Tasks
from tests.difficulty.clusters import accuracy, clustered_features, query_loss, random_tasks


def key(features: Features, task: Tasks, loss: str, scale: float) -> float:
    """Incorrect queries of one task, and the query loss as a tie-breaker below one."""
    prototypes = np.stack([features.values[features.rows_of(s)].mean(axis=0) for s in task.support[0]])
    x = features.values[features.rows_of(task.query[0].ravel())]
    if loss == "euclidean":
        scores = -((x[:, None] - prototypes) ** 2).sum(axis=2)
    else:
        scores = x @ (prototypes / np.linalg.norm(prototypes, axis=1, keepdims=True)).T
    labels = np.repeat(np.arange(len(prototypes)), task.query.shape[2])
    value = query_loss(features, task.support[0], task.query[0], loss, scale)
    return float((scores.argmax(axis=1) != labels).sum() + value / (1 + value))


def naive_search(features: Features, task: Tasks, sign: int, loss: str, scale: float) -> Tasks:
    """Slot by slot the best image of the pool, one support set at a time."""
    for _ in range(accuracy_search.MAX_SWEEPS):
        before = task.support.copy()
        for way, class_id in enumerate(task.class_ids[0]):
            for slot in range(task.support.shape[2]):
                best, best_key = task, sign * key(features, task, loss, scale)
                of_class = features.image_ids[features.class_ids == class_id]
                for candidate in np.setdiff1d(of_class, [*task.query.ravel(), *task.support[0, way]]):
                    trial = Tasks(task.class_ids, task.support.copy(), task.query)
                    trial.support[0, way, slot] = candidate
                    trial_key = sign * key(features, trial, loss, scale)
                    if trial_key > best_key + 1e-9:
                        best, best_key = trial, trial_key
                task = best
        if (task.support == before).all():
            break
    return task


@pytest.mark.parametrize("loss, scale", [("euclidean", 0.2), ("cosine", 10.0)])
@pytest.mark.parametrize("objective, sign", [("hard", 1), ("easy", -1)])
def test_it_is_the_naive_coordinate_search(loss: str, scale: float, objective: str, sign: int) -> None:
    features = clustered_features(n_classes=4, n_images=12, spread=2.0)
    tasks = random_tasks(features, 4, 3, 2, 3)
    quick = search_by_accuracy(features, tasks, objective, SearchOptions(loss=loss, scale=scale))
    for t in range(len(tasks)):
        slow = naive_search(features, tasks.take([t]), sign, loss, scale)
        assert (quick.support[t] == slow.support[0]).all()


@pytest.mark.parametrize("objective, sign", [("hard", -1), ("easy", 1)])
def test_accuracy_never_moves_the_wrong_way_and_goes_beyond_the_other_searches(objective: str, sign: int) -> None:
    features = clustered_features(spread=2.0, n_images=60)
    tasks = random_tasks(features, 40, 5, 3, 8)
    step = select_supports(features, tasks, objective)
    result = search_by_accuracy(features, step, objective)
    change = [accuracy(features, result.take([t])) - accuracy(features, step.take([t])) for t in range(len(tasks))]
    assert (sign * np.array(change) >= 0).all()
    greedy = greedy_supports(features, tasks, objective)
    assert sign * (accuracy(features, result) - accuracy(features, greedy)) > 0.02


def test_few_candidates_of_a_large_pool_do_almost_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    features = clustered_features(spread=2.0, n_images=80)
    tasks = random_tasks(features, 30, 4, 2, 6)
    random, whole = accuracy(features, tasks), accuracy(features, search_by_accuracy(features, tasks))
    monkeypatch.setattr(accuracy_search, "MAX_CANDIDATES", 16)
    short = accuracy(features, search_by_accuracy(features, tasks))
    assert whole <= short < random and random - short > 0.7 * (random - whole)


def test_supports_come_from_the_pool_and_a_batch_is_its_tasks_one_by_one() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 12, 4, 3, 6)
    result = search_by_accuracy(features, tasks)
    assert (features.class_ids[features.rows_of(result.support)] == tasks.class_ids[:, :, None]).all()
    for support, query in zip(result.support, result.query, strict=True):
        assert not set(support.ravel()) & set(query.ravel())
        assert len(set(support.ravel())) == support.size
    alone = np.concatenate([search_by_accuracy(features, tasks.take([t])).support for t in range(12)])
    assert (alone == result.support).all()
    assert (search_by_accuracy(features, tasks, chunk=5).support == result.support).all()


def test_ragged_tasks_keep_their_ways_shots_and_queries() -> None:
    features = clustered_features(n_images=12)
    tasks = random_tasks(features, 6, 5, 4, 6)
    class_ids, support, query = tasks.class_ids.copy(), tasks.support.copy(), tasks.query.copy()
    class_ids[0, 4], support[0, 4], query[0, 4] = PAD, PAD, PAD
    support[1, 2, 1:] = PAD
    query[2, 1, 3:] = PAD
    result = search_by_accuracy(features, Tasks(class_ids, support, query), "easy").support
    assert ((result == PAD) == (support == PAD)).all()
    assert (result != support).any()
    narrow = Tasks(class_ids[:1, :4], support[:1, :4], query[:1, :4])  # the missing way must not matter
    assert (search_by_accuracy(features, narrow, "easy").support == result[:1, :4]).all()


def test_a_pool_that_offers_nothing_leaves_the_support_as_it_is() -> None:
    features = clustered_features(n_images=10)
    tasks = random_tasks(features, 3, 4, 4, 6)
    assert (search_by_accuracy(features, tasks).support == tasks.support).all()


def test_bad_input_is_named_and_progress_can_stop() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 4, 3, 2, 3)
    with pytest.raises(BadInput, match="support images have no features"):
        search_by_accuracy(features, Tasks(tasks.class_ids, tasks.support + 5000, tasks.query))
    with pytest.raises(Cancelled):
        search_by_accuracy(features, tasks, chunk=2, progress=lambda done, total, message: False)
