"""Predictions -> accuracies: hand-computed values, brute force, and properties."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fsviz import evaluation
from fsviz.errors import BadInput
from fsviz.numerics import mean_and_ci95
from fsviz.records import PAD, Predictions, Tasks


def make_predictions(
    predicted: np.ndarray, rank: np.ndarray | None = None, likelihood: np.ndarray | None = None
) -> Predictions:
    predicted = np.asarray(predicted)
    truth = np.arange(predicted.shape[1])[:, None]
    if rank is None:
        rank = np.where(predicted == PAD, PAD, (predicted != truth).astype(int))
    if likelihood is None:
        likelihood = np.where(predicted == PAD, np.nan, np.where(predicted == truth, 0.8, 0.1))
    confidence = np.where(predicted == PAD, np.nan, 0.8)
    return Predictions(predicted, np.asarray(rank), confidence, np.asarray(likelihood))


# two tasks, 3 ways, 2 queries; the second task lacks its third way and one query
HAND = make_predictions([[[0, 1], [1, 1], [0, 2]], [[0, 0], [0, PAD], [PAD, PAD]]])
HAND_TASKS = Tasks(np.array([[7, 4, 9], [4, 9, PAD]]))


def random_predictions(n_tasks: int = 40, n_way: int = 4, n_query: int = 3, n_classes: int = 9, seed: int = 0):
    rng = np.random.default_rng(seed)
    ways = np.stack([rng.permutation(n_classes)[:n_way] for _ in range(n_tasks)])
    predicted = rng.integers(0, n_way, size=(n_tasks, n_way, n_query))
    predicted[rng.random(predicted.shape) < 0.2] = PAD
    predicted[:, 0, 0] = 0
    return make_predictions(predicted), Tasks(ways)


def test_accuracy_loss_and_confidence_by_hand() -> None:
    np.testing.assert_allclose(evaluation.task_accuracy(HAND), [4 / 6, 2 / 3])
    loss = -np.log([0.8, 0.1])
    np.testing.assert_allclose(HAND.loss(), [(4 * loss[0] + 2 * loss[1]) / 6, (2 * loss[0] + loss[1]) / 3])
    assert evaluation.mean_loss(HAND) == pytest.approx(HAND.loss().mean())
    np.testing.assert_allclose(evaluation.task_confidence(HAND), [0.8, 0.8])


def test_top_k_grows_to_one() -> None:
    rank = np.arange(6).reshape(1, 3, 2)
    predictions = make_predictions(np.zeros((1, 3, 2), dtype=int), rank)
    shares = [evaluation.task_top_k(predictions, k)[0] for k in range(1, 8)]
    np.testing.assert_allclose(shares, [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1])
    with pytest.raises(BadInput, match="at least 1"):
        evaluation.task_top_k(predictions, 0)


def test_a_probability_of_zero_has_a_finite_loss() -> None:
    predictions = make_predictions([[[1]]], likelihood=np.zeros((1, 1, 1)))
    assert 80 < evaluation.mean_loss(predictions) < 100


def test_summary_by_hand() -> None:
    summary = evaluation.summary(HAND)
    assert summary["n_tasks"] == 2 and summary["k"] == 5
    assert summary["accuracy"] == pytest.approx(2 / 3) and summary["ci95"] == pytest.approx(0)
    assert summary["top_k"] == 1 and summary["loss"] == pytest.approx(evaluation.mean_loss(HAND))
    alone = HAND.take(slice(0, 1))
    assert evaluation.summary(alone)["ci95"] is None


def test_intervals_cover_the_truth_in_95_of_100_runs() -> None:
    rng = np.random.default_rng(1)
    truth, covered = 0.7, []
    for _ in range(1500):
        skill = np.clip(rng.normal(truth, 0.08, size=200), 0, 1)
        right = rng.random((200, 5, 10)) < skill[:, None, None]
        predicted = np.where(right, np.arange(5)[:, None], (np.arange(5)[:, None] + 1) % 5)
        mean, half = mean_and_ci95(evaluation.task_accuracy(make_predictions(predicted)))
        covered.append(abs(mean - truth) <= half)
    assert 0.93 < np.mean(covered) < 0.97


def test_quantiles_by_hand() -> None:
    accuracy = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9])
    measure = np.array([70.0, 60, 50, 40, 30, 20, np.nan])
    table = evaluation.accuracy_by_quantile(accuracy, measure, 3)
    assert table["bin"].tolist() == [1, 2, 3] and table["n_tasks"].tolist() == [2, 2, 2]
    assert table["low"].tolist() == [20, 40, 60] and table["high"].tolist() == [30, 50, 70]
    np.testing.assert_allclose(table["accuracy"], [0.55, 0.35, 0.15])
    np.testing.assert_allclose(table["ci95"], 1.96 * 0.05)
    with pytest.raises(BadInput, match="from 1 to 6"):
        evaluation.accuracy_by_quantile(accuracy, measure, 7)
    with pytest.raises(BadInput, match="Got 7 and 6"):
        evaluation.accuracy_by_quantile(accuracy, measure[:6], 2)


def test_rolling_accuracy_equals_brute_force() -> None:
    rng = np.random.default_rng(2)
    accuracy, measure = rng.random(50), rng.random(50)
    table = evaluation.rolling_accuracy(accuracy, measure, 7)
    order = np.argsort(measure)
    assert len(table) == 44
    for i in (0, 13, 43):
        inside = order[i : i + 7]
        mean, half = mean_and_ci95(accuracy[inside])
        assert table.loc[i].tolist() == pytest.approx([measure[inside].mean(), mean, half])
    some = evaluation.rolling_accuracy(accuracy, measure, 7, most=3)
    pd.testing.assert_frame_equal(some, table.iloc[[0, 22, 43]].reset_index(drop=True))
    assert len(evaluation.rolling_accuracy(accuracy, measure, 500)) == 1
    assert np.isnan(evaluation.rolling_accuracy(accuracy, measure, 1)["ci95"]).all()
    with pytest.raises(BadInput, match="nothing to plot"):
        evaluation.rolling_accuracy(accuracy, np.full(50, np.nan))


def test_rolling_accuracy_does_not_depend_on_the_order_of_equal_tasks() -> None:
    rng = np.random.default_rng(3)
    accuracy, measure = rng.random(60), np.repeat([1.0, 2.0, 3.0], 20)
    table = evaluation.rolling_accuracy(accuracy, measure, 10)
    assert table["accuracy"].iloc[:11].to_numpy() == pytest.approx(accuracy[:20].mean())
    assert table["accuracy"].iloc[15] == pytest.approx((5 * accuracy[:20].mean() + 5 * accuracy[20:40].mean()) / 10)
    order = rng.permutation(60)
    measure *= 1 + 1e-15 * rng.integers(0, 3, 60)  # sums of the same distances in another order
    pd.testing.assert_frame_equal(evaluation.rolling_accuracy(accuracy[order], measure[order], 10), table)


def test_class_accuracy_by_hand() -> None:
    table = evaluation.class_accuracy(HAND, HAND_TASKS).set_index("class_id")
    assert table.loc[9, ["n_tasks", "n_queries", "accuracy"]].tolist() == pytest.approx([2, 3, 1 / 3])
    assert table.loc[4, ["n_tasks", "n_queries", "accuracy"]].tolist() == [2, 4, 1]
    assert table.loc[7, ["n_tasks", "n_queries", "accuracy"]].tolist() == [1, 2, 0.5]
    assert np.isnan(table.loc[7, "ci95"]) and table.index[0] == 9


def test_class_accuracy_agrees_with_the_accuracy_of_all_queries() -> None:
    predictions, tasks = random_predictions()
    table = evaluation.class_accuracy(predictions, tasks)
    there = predictions.predicted != PAD
    assert table["n_queries"].sum() == there.sum()
    overall = (table["accuracy"] * table["n_queries"]).sum() / there.sum()
    assert overall == pytest.approx((predictions.rank[there] == 0).mean())


def test_pair_confusion_equals_brute_force() -> None:
    predictions, tasks = random_predictions()
    pairs = evaluation.pair_confusion(predictions, tasks)
    confused, counts = np.zeros((9, 9), dtype=int), np.zeros((9, 9), dtype=int)
    for row, message in zip(tasks.class_ids, predictions.predicted):
        for way, class_id in enumerate(row):
            for label in message[way]:
                if label != PAD:
                    confused[class_id, row[label]] += 1
                    counts[class_id, row] += 1
    assert np.array_equal(pairs.class_ids, np.arange(9))
    assert np.array_equal(pairs.confused, confused) and np.array_equal(pairs.n_queries, counts)
    worst = pairs.worst(5)
    off = np.where(np.eye(9, dtype=bool), -1, confused / np.maximum(counts, 1))
    assert (worst["rate"] - worst["ci95"]).is_monotonic_decreasing
    assert worst["rate"].tolist() == pytest.approx(off[worst["class_id"], worst["taken_for"]].tolist())
    assert (worst["class_id"] != worst["taken_for"]).all()
    holds = tasks.class_ids[:, :, None] == np.arange(9)
    has_queries = (holds & (predictions.predicted != PAD).any(axis=2)[:, :, None]).any(axis=1).astype(int)
    assert np.array_equal(pairs.n_tasks, has_queries.T @ holds.any(axis=1))


def test_the_worst_pair_has_three_tasks_and_the_highest_lower_end() -> None:
    """A pair that one task confuses completely comes after one that many tasks confuse often."""
    rows = [[0, 1]] * 20 + [[2, 3]] * 4 + [[4, 5]]
    predicted = [[[1, 1, 0, 0, 0], [1] * 5]] * 20 + [[[1, 0, 0, 1, 1], [1] * 5]] * 4 + [[[1] * 5, [1] * 5]]
    pairs = evaluation.pair_confusion(make_predictions(predicted), Tasks(np.array(rows)))
    worst = pairs.worst()
    assert worst[["class_id", "taken_for"]].values.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert worst["rate"].tolist() == pytest.approx([0.4, 0.6, 1.0])
    assert worst["tasks"].tolist() == [20, 4, 1] and worst["queries"].tolist() == [100, 20, 5]
    assert np.isnan(worst["ci95"].iloc[2])
    low = (worst["rate"] - worst["ci95"])[:2]
    assert low.is_monotonic_decreasing and 0 < low.iloc[1] < low.iloc[0] < 0.4


def test_the_interval_of_a_pair_is_that_of_its_tasks() -> None:
    """Tasks that differ: Student's t over the shares of the tasks, which have equally many queries."""
    rng = np.random.default_rng(0)
    wrong = rng.random((40, 10)) < rng.choice([0.1, 0.9], size=(40, 1))
    predicted = np.stack([wrong.astype(int), np.ones((40, 10), dtype=int)], axis=1)
    pairs = evaluation.pair_confusion(make_predictions(predicted.tolist()), Tasks(np.tile([3, 8], (40, 1))))
    shares = wrong.mean(axis=1)
    assert pairs.rate[0, 1] == pytest.approx(shares.mean())
    assert pairs.ci95[0, 1] == pytest.approx(2.0227 * shares.std(ddof=1) / np.sqrt(40), rel=1e-3)


def test_pair_confusion_with_missing_ways_by_hand() -> None:
    pairs = evaluation.pair_confusion(HAND, HAND_TASKS)
    assert pairs.class_ids.tolist() == [4, 7, 9]
    assert pairs.confused.tolist() == [[4, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert pairs.n_queries.tolist() == [[4, 2, 4], [2, 2, 2], [3, 2, 3]]
    assert pairs.rate[2, 0] == pytest.approx(1 / 3)


def test_classes_that_never_met_have_no_rate() -> None:
    pairs = evaluation.pair_confusion(make_predictions([[[0], [0]], [[0], [1]]]), Tasks(np.array([[0, 1], [2, 3]])))
    assert np.isnan(pairs.rate[0, 2]) and pairs.rate[1, 0] == 1


def test_paired_differences() -> None:
    rng = np.random.default_rng(3)
    first = rng.normal(0.7, 0.1, size=80)
    second = first - rng.normal(0.03, 0.05, size=80)
    result = evaluation.paired_difference(first, second)
    assert result.p_t == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-5)
    assert result.p_wilcoxon == pytest.approx(stats.wilcoxon(first - second).pvalue, rel=1e-5)
    assert result.mean == pytest.approx((first - second).mean()) and result.significant
    back = evaluation.paired_difference(second, first)
    assert back.mean == pytest.approx(-result.mean) and (back.wins, back.losses) == (result.losses, result.wins)
    assert result.wins + result.ties + result.losses == 80 == result.n_tasks


def test_paired_differences_at_the_edges() -> None:
    same = evaluation.paired_difference(np.array([0.6, 0.1 + 0.2]), np.array([0.6, 0.3]))
    assert (same.ties, same.mean, same.p_t, same.p_wilcoxon, same.significant) == (2, 0, 1, 1, False)
    always = evaluation.paired_difference(np.full(20, 0.5), np.full(20, 0.4))
    assert always.wins == 20 and always.significant
    assert not evaluation.paired_difference(np.array([0.5]), np.array([0.4])).significant
    assert evaluation.paired_difference(np.array([0.5, np.nan, 0.3]), np.array([0.4, 0.2, 0.3])).n_tasks == 2
    with pytest.raises(BadInput, match="Got 3 and 2"):
        evaluation.paired_difference(np.ones(3), np.ones(2))


def test_false_alarms_are_as_rare_as_they_claim() -> None:
    rng = np.random.default_rng(4)
    alarms = [evaluation.paired_difference(*(rng.normal(0.7, 0.1, size=(2, 60)))).p_t < 0.05 for _ in range(400)]
    assert 0.02 < np.mean(alarms) < 0.085


def test_ranks_per_quantile_by_hand() -> None:
    measure = np.array([1.0, 2, 3, 4])
    table = evaluation.method_ranks(
        {"a": np.array([0.9, 0.9, 0.2, 0.2]), "b": np.array([0.5, 0.5, 0.5, 0.5]), "c": np.array([0.1, 0.1, 0.5, 0.5])},
        measure,
        2,
    )
    ranks = table.pivot(index="method", columns="bin", values="rank")
    assert ranks[1].tolist() == [1, 2, 3] and ranks[2].tolist() == [3, 1.5, 1.5]
    with pytest.raises(BadInput, match="a with 3"):
        evaluation.method_ranks({"a": np.ones(3)}, measure)
    with pytest.raises(BadInput, match="no run"):
        evaluation.method_ranks({}, measure)
