"""Intervals over tasks, images and classes: do they hold the truth as often as they say, where the truth is known?

Every world is drawn many times: classes that stay, images anew (or classes anew too). The mean over all worlds is the
truth. Bounds are three binomial deviations around 95%.
"""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import evaluation
from fsviz.errors import UnknownName
from fsviz.evaluation.intervals import correlation, estimate
from fsviz.numerics import mean_and_ci95, pearson, spearman
from fsviz.records import PAD, Features, Tasks

N_WAY, N_SHOT, N_QUERY, DIMS = 5, 5, 10, 8


def draw_tasks(rng: np.random.Generator, n_classes: int, n_images: int, n_tasks: int) -> Tasks:
    class_ids = np.argsort(rng.random((n_tasks, n_classes)), axis=1)[:, :N_WAY]
    order = np.argsort(rng.random((n_tasks, N_WAY, n_images)), axis=2)[:, :, : N_SHOT + N_QUERY]
    images = class_ids[:, :, None] * n_images + order
    return Tasks(class_ids, images[:, :, :N_SHOT], images[:, :, N_SHOT:])


def draw_images(rng: np.random.Generator, centres: np.ndarray, n_images: int) -> Features:
    """Images around their class: some near, some far, so that some are easier than others."""
    noise = 1.3 * rng.standard_normal((len(centres), n_images, DIMS)) * rng.gamma(2, 0.5, (len(centres), n_images, 1))
    values = (centres[:, None] + noise).reshape(-1, DIMS).astype(np.float32)
    return Features("d", "b", values, np.arange(len(values)), np.repeat(np.arange(len(centres)), n_images))


def right(features: Features, tasks: Tasks, method: str = "protonet", **parameters) -> np.ndarray:
    return evaluation.correct_queries(evaluation.evaluate(features, tasks, method, parameters))


def covered(estimates: list, truth: float) -> float:
    return np.mean([abs(e.mean - truth) <= e.ci95 for e in estimates])


def test_intervals_over_images_hold_the_accuracy_of_other_images_and_those_over_tasks_do_not() -> None:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((16, DIMS))
    matches: dict[str, list] = {"tasks": [], "images": []}
    pairs: dict[str, list] = {"tasks": [], "images": []}
    for _ in range(100):
        features, tasks = draw_images(rng, centres, 20), draw_tasks(rng, 16, 20, 250)
        first, second = right(features, tasks), right(features, tasks, "knn", k=1)
        for over in matches:
            matches[over].append(estimate(first.mean((1, 2)), over, first, tasks))
            pairs[over].append(estimate((first - second).mean((1, 2)), over, first - second, tasks))
    for kind in (matches, pairs):
        truth = np.mean([e.mean for e in kind["tasks"]])
        assert 0.88 <= covered(kind["images"], truth) <= 1
        assert covered(kind["tasks"], truth) < 0.8
    means = [e.mean for e in matches["images"]]
    assert covered(matches["tasks"], np.mean(means)) < 0.5
    assert np.mean([e.error for e in matches["images"]]) == pytest.approx(np.std(means), rel=0.25)


def test_intervals_over_classes_hold_the_accuracy_and_the_correlation_of_other_classes() -> None:
    rng = np.random.default_rng(1)
    kinds = rng.standard_normal((8, DIMS))

    def world(n_classes: int, n_images: int, n_tasks: int):
        centres = kinds[rng.integers(0, 8, n_classes)] + 0.9 * rng.standard_normal((n_classes, DIMS))
        features, tasks = draw_images(rng, centres, n_images), draw_tasks(rng, n_classes, n_images, n_tasks)
        apart = ((centres[tasks.class_ids][:, :, None] - centres[tasks.class_ids][:, None]) ** 2).sum(-1).mean((1, 2))
        return right(features, tasks), tasks, apart

    values, tasks, apart = world(300, 20, 4000)
    truth = {rank: correlation(values.mean((1, 2)), apart, rank=rank).value for rank in (False, True)}
    assert min(truth.values()) > 0.3
    matches, over_images = [], []
    hits = {name: [] for name in ("pearson", "spearman", "tasks")}
    for _ in range(80):
        values, tasks, apart = world(24, 20, 400)
        accuracy = values.mean((1, 2))
        matches.append(estimate(accuracy, "classes", values, tasks))
        over_images.append(estimate(accuracy, "images", values, tasks))
        for name, rank, class_ids in (
            ("pearson", False, tasks.class_ids),
            ("spearman", True, tasks.class_ids),
            ("tasks", False, None),
        ):
            interval = correlation(accuracy, apart, class_ids, rank)
            assert -1 < interval.low < interval.value < interval.high < 1
            hits[name].append(interval.low <= truth[rank] <= interval.high)
    mean = np.mean([e.mean for e in matches])
    assert covered(matches, mean) >= 0.88
    assert covered(over_images, mean) < covered(matches, mean) - 0.1  # other classes differ more than other images
    assert np.mean(hits["pearson"]) >= 0.88 and np.mean(hits["spearman"]) >= 0.88
    assert np.mean(hits["tasks"]) < 0.8


def test_tasks_that_share_no_image_have_one_interval() -> None:
    rng = np.random.default_rng(2)
    features = draw_images(rng, rng.standard_normal((10, DIMS)), 15 * 60)
    apart = np.arange(60)[:, None, None] * 15 + np.arange(15)
    class_ids = np.argsort(rng.random((60, 10)), axis=1)[:, :N_WAY]
    images = class_ids[:, :, None] * (15 * 60) + apart
    tasks = Tasks(class_ids, images[:, :, :N_SHOT], images[:, :, N_SHOT:])
    values = right(features, tasks)
    over = {name: estimate(values.mean((1, 2)), name, values, tasks) for name in ("tasks", "images")}
    assert over["images"].error == pytest.approx(over["tasks"].error)
    assert over["images"].ci95 == pytest.approx(over["tasks"].ci95, rel=0.03)  # t with 59 degrees of freedom


@pytest.mark.parametrize(
    ("n_classes", "n_images", "n_tasks"), [(16, 20, 20), (16, 20, 40), (16, 100, 40), (40, 60, 40)]
)
def test_the_interval_over_images_is_within_the_one_over_classes(n_classes: int, n_images: int, n_tasks: int) -> None:
    """Other classes bring other images, however few the tasks are."""
    rng = np.random.default_rng(6)
    centres = rng.standard_normal((n_classes, DIMS))
    matches: dict[str, list] = {"tasks": [], "images": [], "classes": []}
    for _ in range(60):
        features, tasks = draw_images(rng, centres, n_images), draw_tasks(rng, n_classes, n_images, n_tasks)
        first, second = right(features, tasks), right(features, tasks, "knn", k=1)
        for values in (first, first - second):
            over = {name: estimate(values.mean((1, 2)), name, values, tasks) for name in matches}
            assert over["tasks"].ci95 <= over["images"].ci95 <= over["classes"].ci95
            if values is first:
                for name, text in over.items():
                    matches[name].append(text)
    means = [e.mean for e in matches["images"]]
    assert covered(matches["images"], np.mean(means)) >= 0.88
    assert np.median([e.ci95 for e in matches["images"]]) < 4 * np.std(means)  # and it is of use


def test_over_tasks_is_the_plain_interval() -> None:
    accuracy = np.array([0.2, 0.4, np.nan, 0.9])
    mean, half = mean_and_ci95(accuracy)
    result = estimate(accuracy)
    assert (result.mean, result.ci95) == pytest.approx((mean, half), rel=1e-4)
    assert estimate(np.array([0.5])).mean == 0.5 and np.isnan(estimate(np.array([0.5])).ci95)
    assert np.isnan(estimate(np.array([np.nan])).mean)
    assert estimate(np.zeros(5)).p == 1 and estimate(np.ones(5)).p == 0
    with pytest.raises(UnknownName, match="interval"):
        estimate(accuracy, "image")


def test_padding_unfinished_tasks_and_tasks_beyond_the_part_change_nothing() -> None:
    rng = np.random.default_rng(3)
    features, tasks = draw_images(rng, rng.standard_normal((12, DIMS)), 20), draw_tasks(rng, 12, 20, 300)
    values = right(features, tasks)
    wide = Tasks(*(np.pad(a, [(0, 0)] + [(0, 2)] * (a.ndim - 1), constant_values=PAD) for a in _arrays(tasks)))
    padded = np.pad(values, [(0, 0), (0, 2), (0, 2)], constant_values=np.nan)
    late = Tasks(*(np.concatenate([a, a[:5]]) for a in _arrays(tasks)))
    unfinished = np.concatenate([values, np.full_like(values[:5], np.nan)])
    accuracy = values.mean((1, 2))
    for over in ("images", "classes"):
        plain = estimate(accuracy, over, values, tasks)
        assert plain.error > estimate(accuracy).error
        for second in (
            estimate(accuracy, over, padded, wide),
            estimate(np.append(accuracy, [np.nan] * 5), over, unfinished, late),
        ):
            assert (second.mean, second.error, second.freedom) == pytest.approx(
                (plain.mean, plain.error, plain.freedom)
            )
        part = estimate(accuracy, over, values[:200], tasks.take(slice(0, 200)))
        assert part.mean == plain.mean and part.error == pytest.approx(plain.error, rel=0.3)


def test_nothing_is_said_about_other_classes_when_every_task_holds_all() -> None:
    rng = np.random.default_rng(4)
    features, tasks = draw_images(rng, rng.standard_normal((5, DIMS)), 20), draw_tasks(rng, 5, 20, 50)
    values = right(features, tasks)
    assert np.isnan(estimate(values.mean((1, 2)), "classes", values, tasks).ci95)
    assert np.isfinite(estimate(values.mean((1, 2)), "images", values, tasks).ci95)
    constant = correlation(values.mean((1, 2)), np.ones(50), tasks.class_ids)
    assert np.isnan([constant.value, constant.low, constant.high]).all()
    perfect = correlation(np.arange(9.0), np.arange(9.0))
    assert (perfect.value, perfect.low, perfect.high) == pytest.approx((1, 1, 1))


@pytest.mark.parametrize("function", [pearson, spearman])
def test_influences_are_what_leaving_one_out_changes(function) -> None:
    rng = np.random.default_rng(5)
    first = rng.standard_normal(150).round(1)  # with ties
    second = (first + rng.standard_normal(150)).round(1)
    value, influence = function(first, second)
    from scipy import stats

    expected = (stats.pearsonr if function is pearson else stats.spearmanr)(first, second).statistic
    assert value == pytest.approx(expected) and influence.mean() == pytest.approx(0, abs=1e-12)
    without = np.array([function(np.delete(first, i), np.delete(second, i))[0] for i in range(150)])
    np.testing.assert_allclose(influence, 149 * (value - without), atol=0.15)
    assert np.corrcoef(influence, value - without)[0, 1] > 0.999


def _arrays(tasks: Tasks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tasks.class_ids, tasks.support, tasks.query


@pytest.mark.parametrize("rank", [False, True])
def test_variants_of_a_task_count_once(rank: bool) -> None:
    rng = np.random.default_rng(3)
    class_ids = np.stack([rng.choice(20, 5, replace=False) for _ in range(60)])
    measure = rng.normal(size=60)
    accuracy = measure + rng.normal(size=60)
    once = correlation(accuracy, measure, class_ids, rank)
    thrice = correlation(np.tile(accuracy[:, None], 3), np.tile(measure[:, None], 3), class_ids, rank)
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((once.value, once.low, once.high), abs=1e-9)
    gaps = np.tile(accuracy[:, None], 3)
    gaps[:, 1:] = np.nan  # what is missing has no say
    assert correlation(gaps, np.tile(measure[:, None], 3), class_ids, rank) == once
