from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsviz.difficulty import fastdiffsel, objectives
from fsviz.difficulty.class_layout import ClassLayout
from fsviz.difficulty.fastdiffsel import project_l1, select_supports, support_loss, trace_steps
from fsviz.difficulty.query_loss import loss_gradient
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput, Cancelled, UnknownName
from fsviz.records import PAD, Features, Tasks
from tests.difficulty.clusters import accuracy, clustered_features, query_loss, random_tasks


def pool_with_known_worst() -> tuple[Features, Tasks, np.ndarray]:
    """Two classes on a line, at 0 and 10; three images of class 0 lie at 8, the wrong side."""
    rng = np.random.default_rng(0)
    first = np.column_stack([rng.normal(0, 0.3, 20), rng.normal(0, 0.3, 20)])
    second = np.column_stack([rng.normal(10, 0.3, 20), rng.normal(0, 0.3, 20)])
    worst = np.array([4, 9, 17])
    first[worst, 0] = [7.9, 8.0, 8.1]
    features = Features(
        "line", "none", np.vstack([first, second]).astype(np.float32), np.arange(40), np.repeat([0, 1], 20)
    )
    queries = np.stack([[0, 1, 2, 3], [20, 21, 22, 23]])
    support = np.stack([[5, 6, 7], [25, 26, 27]])
    return features, Tasks(np.array([[0, 1]]), support[None], queries[None]), worst


@pytest.mark.parametrize("loss", ["euclidean", "cosine"])
def test_known_worst_images_are_found_exactly(loss: str) -> None:
    features, tasks, worst = pool_with_known_worst()
    if loss == "cosine":  # away from the origin, where angles mean something
        features = Features("l", "n", features.values + np.float32([1, 5]), features.image_ids, features.class_ids)
    hard = select_supports(features, tasks, "hard", SearchOptions(loss=loss))
    easy = select_supports(features, tasks, "easy", SearchOptions(loss=loss))
    assert set(hard.support[0, 0]) == set(worst)
    assert not set(easy.support[0, 0]) & set(worst)


@pytest.mark.parametrize("loss", ["euclidean", "cosine"])
@pytest.mark.parametrize("options", [{}, {"start": "random"}, {"n_steps": 3}])
def test_supports_come_from_the_pool(loss: str, options: dict) -> None:
    features = clustered_features()
    tasks = random_tasks(features, 20, 4, 3, 6)
    hard = select_supports(features, tasks, "hard", SearchOptions(loss=loss, **options))
    classes = features.class_ids[features.rows_of(hard.support)]
    assert (classes == hard.class_ids[:, :, None]).all()
    for support, query in zip(hard.support, hard.query, strict=True):
        assert not set(support.ravel()) & set(query.ravel())
        assert len(set(support.ravel())) == support.size
    assert (hard.query == tasks.query).all()


def test_order_of_accuracies() -> None:
    features = clustered_features(spread=2.0, n_images=80)
    tasks = random_tasks(features, 60, 5, 3, 10)
    result = {o: accuracy(features, select_supports(features, tasks, o)) for o in ("hard", "easy")}
    assert result["hard"] < accuracy(features, tasks) - 0.15
    assert result["easy"] > accuracy(features, tasks) + 0.02


@pytest.mark.parametrize("loss", ["euclidean", "cosine"])
def test_gradient_is_that_of_autograd(loss: str) -> None:
    torch.manual_seed(0)
    prototypes = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    query = torch.randn(3, 8, 5, dtype=torch.float64)
    way_mask = torch.ones(3, 4, dtype=torch.bool)
    way_mask[1, 3] = False
    labels = torch.arange(4).repeat_interleave(2).expand(3, -1)
    query_mask = (labels != 3) | way_mask[:, 3:]
    query_mask[0, 0] = False
    value, gradient = loss_gradient(prototypes.detach(), way_mask, query, query_mask, labels, loss, 2.0)
    if loss == "euclidean":
        logits = -2.0 * torch.cdist(query, prototypes) ** 2
    else:
        logits = 2.0 * torch.nn.functional.cosine_similarity(query[:, :, None], prototypes[:, None], dim=3)
    logits = logits.masked_fill(~way_mask[:, None], -torch.inf)
    expected = torch.stack(
        [torch.nn.functional.cross_entropy(logits[t][query_mask[t]], labels[t][query_mask[t]]) for t in range(3)]
    )
    expected.sum().backward()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(gradient[way_mask], prototypes.grad[way_mask])


@pytest.mark.parametrize("loss", ["euclidean", "cosine"])
@pytest.mark.parametrize("objective", ["hard", "easy"])
@pytest.mark.parametrize("step", [0.01, 200.0])
def test_closed_form_is_one_step_from_ones(loss: str, objective: str, step: float) -> None:
    features = clustered_features()
    tasks = random_tasks(features, 10, 4, 3, 6)
    quick = select_supports(features, tasks, objective, SearchOptions(loss=loss))
    layout = ClassLayout(features, np.unique(features.class_ids))
    sign = objectives.get(objective).sign
    slow = fastdiffsel._ascend(layout, tasks, sign, SearchOptions(loss=loss, step=step))
    assert (np.sort(quick.support) == np.sort(slow)).all()


@pytest.mark.parametrize("options", [{}, {"start": "random", "step": 1.0, "seed": 3}])
def test_a_batch_is_its_tasks_one_by_one_and_order_does_not_matter(options) -> None:
    options = SearchOptions(**options)
    features = clustered_features()
    tasks = random_tasks(features, 12, 4, 3, 6)
    together = select_supports(features, tasks, options=options).support
    alone = np.concatenate([select_supports(features, tasks.take([t]), options=options).support for t in range(12)])
    order = np.random.default_rng(0).permutation(12)
    assert (together == alone).all()
    assert (select_supports(features, tasks.take(order), options=options).support == together[order]).all()
    assert (select_supports(features, tasks, options=options, chunk=5).support == together).all()


def test_random_weights_follow_the_seed() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 12, 4, 3, 6)
    item, again, second = (
        select_supports(features, tasks, options=SearchOptions(start="random", step=1e-6, seed=seed)).support
        for seed in (1, 1, 2)
    )
    assert (item == again).all()
    assert (item != second).mean() > 0.5


def test_the_size_of_features_does_not_matter() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 12, 4, 3, 6)
    larger = Features("x", "y", features.values * 1000, features.image_ids, features.class_ids)
    assert (select_supports(features, tasks).support == select_supports(larger, tasks).support).all()


def test_a_saturated_softmax_still_orders_the_pool() -> None:
    features, tasks, worst = pool_with_known_worst()
    larger = Features("x", "y", features.values * 1000, features.image_ids, features.class_ids)
    assert set(select_supports(larger, tasks, options=SearchOptions(scale=1.0)).support[0, 0]) == set(worst)


def test_ragged_tasks_keep_their_ways_shots_and_queries() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 6, 5, 4, 6)
    class_ids, support, query = tasks.class_ids.copy(), tasks.support.copy(), tasks.query.copy()
    class_ids[0, 4], support[0, 4], query[0, 4] = PAD, PAD, PAD
    support[1, 2, 1:] = PAD
    query[2, 1, 3:] = PAD
    ragged = Tasks(class_ids, support, query)
    for options in ({}, {"n_steps": 2}):
        hard = select_supports(features, ragged, options=SearchOptions(**options))
        assert ((hard.support == PAD) == (support == PAD)).all()
        assert (features.class_ids[features.rows_of(hard.support[1, 2, :1])] == class_ids[1, 2]).all()
    # the missing way must not matter: the same task without it gives the same images
    narrow = Tasks(class_ids[:1, :4], support[:1, :4], query[:1, :4])
    assert (select_supports(features, narrow).support == select_supports(features, ragged).support[:1, :4]).all()


def test_a_small_step_from_random_weights_is_a_random_draw_and_a_large_one_is_hard() -> None:
    features = clustered_features(spread=2.0, n_images=80)
    tasks = random_tasks(features, 60, 5, 3, 10)
    random = [SearchOptions(start="random", step=step) for step in (1e-4, 20, 1e5)]
    result = [accuracy(features, select_supports(features, tasks, options=options)) for options in random]
    assert abs(result[0] - accuracy(features, tasks)) < 0.05
    assert result[0] > result[1] > result[2]
    again = select_supports(features, tasks, options=random[1])
    assert (again.support == select_supports(features, tasks, options=random[1]).support).all()
    another = select_supports(features, tasks, options=replace(random[1], seed=1))
    assert (again.support != another.support).any()


def algorithm_1(features: Features, task: Tasks, sign: float, step: float, n_steps: int) -> list[list[int]]:
    """FastDiffSel as the paper prints it, for one task: autograd, exact projection, the heaviest images of each class.

    Random weights are those of the seed 0; among equal final weights the one that started heavier comes first.
    """
    layout = ClassLayout(features, np.unique(features.class_ids))
    sampled = fastdiffsel._random_weights(layout, task, 0)
    query = torch.from_numpy(features.values[features.rows_of(task.query[0].ravel())])
    labels = torch.arange(task.query.shape[1]).repeat_interleave(task.query.shape[2])
    pools, first = [], []
    for way, class_id in enumerate(task.class_ids[0]):
        image_ids = layout.image_ids(int(class_id))
        open_ = ~np.isin(image_ids, task.query[0, way])
        pools.append(image_ids[open_])
        first.append(torch.from_numpy(sampled[0, way][open_].astype(np.float64)))
    weights = [w.clone() for w in first]
    for _ in range(n_steps):
        weights = [w.requires_grad_() for w in weights]
        values = [torch.from_numpy(features.values[features.rows_of(p)]) for p in pools]
        prototypes = torch.stack([(w[:, None] * v).sum(0) / w.sum() for w, v in zip(weights, values, strict=True)])
        logits = -((query[:, None] - prototypes) ** 2).sum(2)
        torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()
        moved = [(w + sign * step * w.grad).detach().numpy() for w in weights]
        weights = [torch.from_numpy(nearest_in_ball(w, task.support.shape[2])) for w in moved]
    return [
        pool[np.lexsort((-f.numpy(), -w.numpy()))][: task.support.shape[2]].tolist()
        for pool, w, f in zip(pools, weights, first, strict=True)
    ]


def nearest_in_ball(w: np.ndarray, radius: float) -> np.ndarray:
    """The projection onto the l1 ball, its threshold found by sorting (Duchi et al. 2008)."""
    if np.abs(w).sum() <= radius:
        return w
    sizes = np.sort(np.abs(w))[::-1]
    above = np.flatnonzero(sizes - (sizes.cumsum() - radius) / np.arange(1, len(w) + 1) > 0)[-1]
    threshold = (sizes[: above + 1].sum() - radius) / (above + 1)
    return np.sign(w) * np.maximum(np.abs(w) - threshold, 0)


@pytest.mark.parametrize("objective", ["hard", "easy"])
@pytest.mark.parametrize("step, n_steps", [(0.01, 1), (200.0, 1), (0.01, 3)])
def test_literal_is_the_algorithm_as_printed(objective: str, step: float, n_steps: int) -> None:
    features = clustered_features(spread=2.0)
    tasks = random_tasks(features, 6, 4, 3, 6)
    result = select_supports(
        features,
        tasks,
        objective,
        SearchOptions(scale=1.0, step=step, n_steps=n_steps, start="random", literal=True),
    )
    for t in range(len(tasks)):
        printed = algorithm_1(features, tasks.take([t]), objectives.get(objective).sign, step, n_steps)
        assert result.support[t].tolist() == printed


def test_literal_weights_that_cancel_are_refused() -> None:
    features = clustered_features(spread=2.0)
    values = features.values * 1e150  # distances beyond float64
    with pytest.raises(BadInput, match="not finite"):
        select_supports(
            Features("x", "y", values, features.image_ids, features.class_ids),
            random_tasks(features, 2, 3, 2, 3),
            options=SearchOptions(scale=1.0, start="random", literal=True, n_steps=2),
        )


@pytest.mark.parametrize("options", [{}, {"start": "random", "step": 1.0}, {"literal": True, "step": 0.01}])
def test_a_trace_has_every_number_of_steps_and_the_weighted_loss(options: dict) -> None:
    features = clustered_features(spread=2.0)
    tasks = random_tasks(features, 6, 4, 3, 6)
    result, losses = trace_steps(features, tasks, options=SearchOptions(scale=0.1, n_steps=3, **options))
    for n_steps, after in enumerate(result, start=1):
        alone = select_supports(features, tasks, options=SearchOptions(scale=0.1, n_steps=n_steps, **options))
        assert (np.sort(after.support) == np.sort(alone.support)).all()
    assert losses.shape == (4, 6)
    if options.get("start") != "random":  # equal weights: the prototypes are the means of the pools
        for t in range(6):
            pools = [
                np.setdiff1d(features.image_ids[features.class_ids == c], q)
                for c, q in zip(tasks.class_ids[t], tasks.query[t], strict=True)
            ]
            assert losses[0, t] == pytest.approx(query_loss(features, pools, tasks.query[t], "euclidean", 0.1))


@pytest.mark.parametrize("loss", ["euclidean", "cosine"])
def test_the_loss_of_a_support_set_is_that_of_its_prototypes(loss: str) -> None:
    features = clustered_features(spread=2.0)
    tasks = random_tasks(features, 6, 4, 3, 6)
    result = support_loss(features, tasks, SearchOptions(loss=loss, scale=0.1))
    by_hand = [query_loss(features, s, q, loss, 0.1) for s, q in zip(tasks.support, tasks.query, strict=True)]
    assert result == pytest.approx(by_hand, rel=1e-4)


def test_hard_raises_the_query_loss_of_nearly_every_task() -> None:
    features = clustered_features(spread=2.0)
    tasks = random_tasks(features, 20, 4, 3, 6)
    hard = select_supports(features, tasks)
    raised = [
        query_loss(features, h, q, "euclidean", 0.1) > query_loss(features, r, q, "euclidean", 0.1)
        for h, r, q in zip(hard.support, tasks.support, tasks.query, strict=True)
    ]
    assert np.mean(raised) > 0.9


def test_projection_leaves_a_vector_inside_the_ball_as_it_is() -> None:
    inside = torch.tensor([[0.5, 0.2, 0.0, 0.3], [-0.4, 0.1, 0.2, 0.0]], dtype=torch.float64)
    assert torch.equal(project_l1(inside, torch.tensor([1.5, 0.8])), inside)
    mixed = torch.cat([inside, torch.tensor([[3.0, 1.0, 0.0, 0.0]], dtype=torch.float64)])
    moved = project_l1(mixed, torch.tensor([1.5, 0.8, 2.0], dtype=torch.float64))
    assert torch.equal(moved[:2], inside)
    torch.testing.assert_close(moved[2], torch.tensor([2.0, 0.0, 0.0, 0.0], dtype=torch.float64))


def test_projection_is_the_nearest_point_of_the_ball() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(20, 15)) * 3
    radius = rng.uniform(0.5, 4, 20)
    moved = project_l1(torch.from_numpy(weights), torch.from_numpy(radius)).numpy()
    for w, r, m in zip(weights, radius, moved, strict=True):
        np.testing.assert_allclose(m, nearest_in_ball(w, r), atol=1e-9)


def test_bad_input_is_named() -> None:
    features = clustered_features(n_images=10)
    with pytest.raises(BadInput, match=r"Class \d+ has 10 images with features, 6 of them queries, and 5 shots"):
        tasks = random_tasks(features, 3, 4, 4, 6)
        select_supports(features, Tasks(tasks.class_ids, np.repeat(tasks.support, 2, axis=2)[:, :, :5], tasks.query))
    tasks = random_tasks(features, 3, 4, 2, 6)
    with pytest.raises(UnknownName, match="objective"):
        select_supports(features, tasks, "nasty")
    with pytest.raises(BadInput, match="loss"):
        SearchOptions(loss="hinge")
    with pytest.raises(BadInput, match="positive number"):
        SearchOptions(step=-1)
    with pytest.raises(BadInput, match="at least one gradient step"):
        SearchOptions(n_steps=0)
    with pytest.raises(BadInput, match="classes only"):
        select_supports(features, Tasks(tasks.class_ids))
    with pytest.raises(BadInput, match="no features"):
        select_supports(features, Tasks(tasks.class_ids, tasks.support, tasks.query + 5000))
    broken = Features("x", "y", features.values * np.nan, features.image_ids, features.class_ids)
    with pytest.raises(BadInput, match="not finite"):
        select_supports(broken, tasks)


def test_progress_is_reported_and_can_stop_the_search() -> None:
    features = clustered_features()
    tasks = random_tasks(features, 10, 4, 3, 6)
    calls = []
    select_supports(features, tasks, chunk=4, progress=lambda done, total, message: calls.append((done, total)))
    assert calls == [(4, 10), (8, 10), (10, 10)]
    with pytest.raises(Cancelled):
        select_supports(features, tasks, chunk=4, progress=lambda done, total, message: False)
