"""Explaining the accuracy of tasks: planted causes are named, in their order; noise explains nothing."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz.errors import BadInput
from fsviz.evaluation.regression import FOLDS, VarianceExplained, _folds, explain, sampling_noise

GROUPS = {"first": ["a", "b"], "second": ["c"], "third": ["d"]}
N_TASKS, N_CLASSES = 300, 30


def tasks(seed: int) -> tuple[np.random.Generator, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    class_ids = np.stack([rng.choice(N_CLASSES, 5, replace=False) for _ in range(N_TASKS)])
    return rng, class_ids, {name: rng.normal(size=N_TASKS) for name in "abcd"}


def planted(seed: int = 0, **weights: float) -> VarianceExplained:
    """Accuracies that numbers move by these weights, and noise by 0.05."""
    rng, class_ids, numbers = tasks(seed)
    accuracy = 0.7 + 0.05 * rng.normal(size=N_TASKS) + sum(w * numbers[name] for name, w in weights.items())
    return explain(numbers, accuracy, GROUPS, class_ids, seed)


def test_a_planted_cause_is_named_with_its_share() -> None:
    result = planted(c=0.05)
    assert max(result.lost, key=lambda name: result.lost[name].value) == "second"
    assert result.lost["second"].sure > 0 and result.total.low > 0
    assert result.total.low < 0.5 < result.total.high  # 0.05² of 0.05² + 0.05²
    assert result.lost["second"].low < 0.5 < result.lost["second"].high
    assert result.lost["first"].low <= 0 and result.lost["third"].low <= 0
    assert result.alone["second"].value == pytest.approx(result.total.value, abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_two_planted_causes_come_in_the_order_and_about_the_ratio_of_their_variances(seed: int) -> None:
    result = planted(seed, a=0.08, d=0.04)
    assert sorted(result.lost, key=lambda name: -result.lost[name].value)[:2] == ["first", "third"]
    ratio = result.lost["first"].value / result.lost["third"].value
    assert 2.5 < ratio < 6.5  # four, as 0.08² is to 0.04²


def test_a_curved_cause_is_found_where_a_straight_line_sees_nothing() -> None:
    rng, class_ids, numbers = tasks(5)
    accuracy = 0.7 + 0.05 * (numbers["c"] ** 2 - 1) + 0.02 * rng.normal(size=N_TASKS)
    assert abs(np.corrcoef(numbers["c"], accuracy)[0, 1]) < 0.25
    assert explain(numbers, accuracy, GROUPS, class_ids).lost["second"].sure > 0.3


def test_noise_explains_nothing_beyond_its_interval() -> None:
    result = [planted(seed) for seed in range(20)]
    assert np.mean([item.total.value for item in result]) < 0.01
    assert sum(item.total.low > 0 for item in result) == 0
    assert sum(max(share.sure for share in item.lost.values()) > 0 for item in result) == 0


def test_numbers_of_classes_do_not_explain_what_other_classes_do() -> None:
    """Accuracies and numbers that both hang on the classes, though not on each other: tasks alone would look sure."""
    wrong = 0
    for seed in range(12):
        rng, class_ids, _ = tasks(seed)
        accuracy = 0.7 + rng.normal(size=N_CLASSES)[class_ids].mean(axis=1) * 0.1 + 0.03 * rng.normal(size=N_TASKS)
        numbers = {name: rng.normal(size=N_CLASSES)[class_ids].mean(axis=1) for name in "abcd"}
        result = explain(numbers, accuracy, GROUPS, class_ids, seed)
        wrong += result.total.low > 0 and max(share.sure for share in result.lost.values()) > 0
    assert wrong <= 1


def test_what_groups_add_sums_to_what_is_expected() -> None:
    result = planted(a=0.05, c=0.03)
    np.testing.assert_allclose(result.middle + sum(result.added.values()), result.expected, atol=1e-9)


def test_a_task_of_unknown_accuracy_is_left_out_and_a_missing_number_filled() -> None:
    rng, class_ids, numbers = tasks(1)
    accuracy = 0.7 + 0.05 * numbers["c"] + 0.02 * rng.normal(size=N_TASKS)
    accuracy[7] = np.nan
    numbers["a"][:10] = np.nan
    result = explain(numbers, accuracy, GROUPS, class_ids)
    assert np.isnan(result.expected[7]) and np.isfinite(np.delete(result.expected, 7)).all()


def test_tasks_of_the_same_classes_are_held_out_together() -> None:
    class_ids = np.repeat(np.arange(60).reshape(20, 3), 5, axis=0)
    folds = _folds(np.random.default_rng(0).permuted(class_ids, axis=1), 0).reshape(20, 5)
    assert (folds == folds[:, :1]).all()
    assert set(folds[:, 0]) == set(range(FOLDS))
    every = _folds(np.tile(np.arange(5), (100, 1)), 0)  # all tasks have all classes
    np.testing.assert_array_equal(np.bincount(every), [20] * FOLDS)


def test_too_few_tasks_and_no_numbers_are_refused() -> None:
    _, class_ids, numbers = tasks(0)
    few = {name: values[:20] for name, values in numbers.items()}
    with pytest.raises(BadInput, match="at least 50 tasks"):
        explain(few, np.full(20, 0.5), GROUPS, class_ids[:20])
    with pytest.raises(BadInput, match="a measure that differs"):
        explain(numbers, np.full(N_TASKS, 0.5), {}, class_ids)


def test_luck_is_the_variance_of_drawn_queries() -> None:
    """1,000 tasks of one true accuracy differ by luck alone; true differences leave less to it."""
    rng = np.random.default_rng(0)
    n_queries = np.full(1000, 50)
    assert sampling_noise(rng.binomial(50, 0.8, 1000) / 50, n_queries) == pytest.approx(1, abs=0.1)
    easy = np.repeat([0.6, 0.95], 500)
    by_hand = (0.8 * 0.2 - 0.175**2) / 50  # mean of p (1 - p) is less for two kinds of tasks
    shares = sampling_noise(rng.binomial(50, easy) / 50, n_queries)
    assert shares == pytest.approx((0.6 * 0.4 + 0.95 * 0.05) / 2 / 50 / (0.175**2 + by_hand), rel=0.25)
    assert np.isnan(sampling_noise(np.full(10, 0.5), n_queries[:10]))
