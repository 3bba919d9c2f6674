from __future__ import annotations

import numpy as np
import pytest

from fsviz.difficulty import swap_search
from fsviz.difficulty.fastdiffsel import select_supports
from fsviz.difficulty.greedy import greedy_supports
from fsviz.difficulty.search_options import SearchOptions
from fsviz.difficulty.swap_search import refine_supports
from fsviz.errors import BadInput, Cancelled
from fsviz.records import PAD, Tasks
from tests.difficulty.clusters import accuracy, clustered_features, query_loss, random_tasks


def naive_rounds(features, class_ids, support, query, sign: int, loss: str, scale: float, n_rounds: int):
    """Class by class the best of all swaps of one image, one loss at a time."""
    support = support.copy()
    for _ in range(n_rounds):
        for way, class_id in enumerate(class_ids):
            pool = np.setdiff1d(features.image_ids[features.class_ids == class_id], [*query.ravel(), *support[way]])
            best, best_loss = support, sign * query_loss(features, support, query, loss, scale)
            for slot in range(support.shape[1]):
                for candidate in pool:
                    trial = support.copy()
                    trial[way, slot] = candidate
                    trial_loss = sign * query_loss(features, trial, query, loss, scale)
                    if trial_loss > best_loss:
                        best, best_loss = trial, trial_loss
            support = best
    return support


@pytest.mark.parametrize("loss, scale", [("euclidean", 0.2), ("cosine", 10.0)])
@pytest.mark.parametrize("objective, n_rounds", [("hard", 1), ("easy", 1), ("hard", 3)])
def test_with_the_whole_pool_on_the_list_it_is_the_naive_search(
    loss: str, scale: float, objective: str, n_rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap_search, "SHORT_LIST", 100)
    features = clustered_features(n_classes=4, n_images=12, spread=2.0)
    tasks = random_tasks(features, 4, 3, 2, 3)
    quick = refine_supports(features, tasks, objective, SearchOptions(loss=loss, scale=scale, n_rounds=n_rounds))
    for t in range(len(tasks)):
        item = tasks.class_ids[t], tasks.support[t], tasks.query[t]
        slow = naive_rounds(features, *item, 1 if objective == "hard" else -1, loss, scale, n_rounds)
        assert (quick.support[t] == slow).all()


@pytest.mark.parametrize("objective", ["hard", "easy"])
@pytest.mark.parametrize("loss, scale", [("euclidean", 0.1), ("cosine", 10.0)])
def test_the_loss_of_a_task_never_moves_the_wrong_way(objective: str, loss: str, scale: float) -> None:
    features = clustered_features(spread=2.0)
    tasks = random_tasks(features, 20, 4, 3, 6)
    options = SearchOptions(loss=loss, scale=scale)
    before = select_supports(features, tasks, objective, options)
    after = refine_supports(features, before, objective, options)
    change = np.array(
        [
            query_loss(features, a, q, loss, scale) - query_loss(features, b, q, loss, scale)
            for a, b, q in zip(after.support, before.support, tasks.query, strict=True)
        ]
    )
    sign = 1 if objective == "hard" else -1
    assert (sign * change > -1e-9).all()
    assert (sign * change > 1e-3).any()


def test_swaps_bring_one_step_to_what_greedy_search_finds() -> None:
    features = clustered_features(spread=2.0, n_images=60)
    tasks = random_tasks(features, 40, 5, 3, 8)
    for objective, sign in (("hard", -1), ("easy", 1)):
        step = select_supports(features, tasks, objective)
        refined = accuracy(features, refine_supports(features, step, objective))
        assert sign * (refined - accuracy(features, step)) > 0
        assert sign * (refined - accuracy(features, greedy_supports(features, tasks, objective))) > -0.02


def test_supports_come_from_the_pool_and_a_batch_is_its_tasks_one_by_one() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 12, 4, 3, 6)
    result = refine_supports(features, tasks)
    assert (features.class_ids[features.rows_of(result.support)] == tasks.class_ids[:, :, None]).all()
    for support, query in zip(result.support, result.query, strict=True):
        assert not set(support.ravel()) & set(query.ravel())
        assert len(set(support.ravel())) == support.size
    alone = np.concatenate([refine_supports(features, tasks.take([t])).support for t in range(12)])
    assert (alone == result.support).all()
    assert (refine_supports(features, tasks, chunk=5).support == result.support).all()


def test_ragged_tasks_keep_their_ways_shots_and_queries() -> None:
    features = clustered_features(n_images=12)
    tasks = random_tasks(features, 6, 5, 4, 6)
    class_ids, support, query = tasks.class_ids.copy(), tasks.support.copy(), tasks.query.copy()
    class_ids[0, 4], support[0, 4], query[0, 4] = PAD, PAD, PAD
    support[1, 2, 1:] = PAD
    query[2, 1, 3:] = PAD
    result = refine_supports(features, Tasks(class_ids, support, query), "easy").support
    assert ((result == PAD) == (support == PAD)).all()
    assert (result != support).any()
    narrow = Tasks(class_ids[:1, :4], support[:1, :4], query[:1, :4])  # the missing way must not matter
    assert (refine_supports(features, narrow, "easy").support == result[:1, :4]).all()


def test_a_pool_that_offers_nothing_leaves_the_support_as_it_is() -> None:
    features = clustered_features(n_images=10)
    tasks = random_tasks(features, 3, 4, 4, 6)
    assert (refine_supports(features, tasks).support == tasks.support).all()


def test_bad_input_is_named_and_progress_can_stop() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 4, 3, 2, 3)
    with pytest.raises(BadInput, match="at least one round"):
        SearchOptions(n_rounds=0)
    with pytest.raises(BadInput, match="support images have no features"):
        refine_supports(features, Tasks(tasks.class_ids, tasks.support + 5000, tasks.query))
    with pytest.raises(Cancelled):
        refine_supports(features, tasks, chunk=2, progress=lambda done, total, message: False)
