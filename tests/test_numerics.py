"""Intervals and corrections that several rooms share: hand-computed values, then coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fsviz import numerics
from fsviz.numerics import clustered_mean, cramers_v, cramers_v_by_chance, holm, mean_and_ci95, pointwise_information


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.5, 0.9])).tolist() == pytest.approx([1.0, 1.0])
    corrected = holm(np.array([np.nan, 0.02]))
    assert np.isnan(corrected[0]) and corrected[1] == pytest.approx(0.02)
    assert holm(np.array([])).size == 0


def test_clusters_of_one_size_are_a_t_test_over_their_means() -> None:
    values = np.random.default_rng(0).normal(1.0, 2.0, (12, 7))
    mean, half, p = clustered_mean(values, np.broadcast_to(np.arange(12)[:, None] + 40, values.shape))
    expected = stats.ttest_1samp(values.mean(1), 0.0)
    low, high = expected.confidence_interval(0.95)
    assert (mean, mean - half, mean + half, p) == pytest.approx((values.mean(), low, high, expected.pvalue))


def test_clusters_by_hand_and_at_the_edges() -> None:
    # deviations from the mean 2 sum to -3 in one cluster and 3 in the other: sqrt((9 + 9) * 2 / 1) / 4 = 1.5
    mean, half, _ = clustered_mean(np.array([1.0, 0.0, 3.0, 4.0, np.nan]), np.array([0, 0, 5, 5, 9]))
    assert mean == 2 and half == pytest.approx(1.5 * stats.t.ppf(0.975, 1))
    assert np.isnan(clustered_mean(np.array([1.0, 2.0]), np.array([3, 3]))[1:]).all()
    assert clustered_mean(np.zeros(4), np.array([0, 0, 1, 1])) == (0.0, 0.0, 1.0)
    assert clustered_mean(np.ones(4), np.array([0, 0, 1, 1])) == (1.0, 0.0, 0.0)
    assert np.isnan(clustered_mean(np.array([]), np.array([]))).all()


def test_clustered_intervals_cover_where_plain_ones_do_not() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(15), 20)
    plain = clustered = 0
    for _ in range(1000):
        values = rng.normal(size=15)[clusters] + rng.normal(size=len(clusters))
        mean, half = mean_and_ci95(values)
        plain += abs(mean) <= half
        mean, half, _ = clustered_mean(values, clusters)
        clustered += abs(mean) <= half
    assert 930 <= clustered <= 970
    assert plain < 600


def test_cramers_v_by_hand() -> None:
    table = np.array([[30, 10], [20, 40]])
    value, low, high = cramers_v(table)
    chi2 = 100 * (30 * 40 - 10 * 20) ** 2 / (40 * 60 * 50 * 50)
    assert value == pytest.approx(np.sqrt((chi2 / 100 - 1 / 99) / (2 - 1 / 99 - 1)))
    assert low < value < high
    value, low, high = cramers_v(np.diag([50, 50, 50]))
    assert value == pytest.approx(1) and low > 0.97 and high == 1
    value, low, high = cramers_v(np.full((3, 4), 7))  # no tie at all is a finding of 84 counts, not a certainty
    assert value == low == 0 < high < 0.4
    assert cramers_v(np.pad(table, 1)) == cramers_v(table)  # rows and columns without counts say nothing
    assert np.isnan(cramers_v(np.array([[3, 4]]))).all()


def test_cramers_v_knows_chance_and_its_interval_covers() -> None:
    rng = np.random.default_rng(0)
    p = np.array([[0.3, 0.1, 0.1], [0.05, 0.2, 0.25]])
    truth = np.sqrt((p**2 / (p.sum(1, keepdims=True) * p.sum(0, keepdims=True))).sum() - 1)
    ends = np.array([cramers_v(rng.multinomial(800, p.ravel()).reshape(p.shape)) for _ in range(400)])
    assert ends[:, 0].mean() == pytest.approx(truth, abs=0.01)
    assert 0.92 <= np.mean((ends[:, 1] <= truth) & (truth <= ends[:, 2])) <= 0.98
    free = rng.multinomial(800, np.full(12, 1 / 12)).reshape(3, 4)
    assert 0 < cramers_v_by_chance(free) < 0.12
    assert np.mean([cramers_v(rng.multinomial(800, np.full(12, 1 / 12)).reshape(3, 4))[0] for _ in range(200)]) < 0.04


@pytest.mark.parametrize("freedom", [0.0, 0.5, 1.0, 3.3, 99.0, 1e6, np.inf, np.nan])
def test_students_t_and_mean_ranks_are_those_of_scipy_stats(freedom: float) -> None:
    """Bit for bit: numbers of runs recorded before stay what they are."""
    for p in (0.6, 0.975, 0.999):
        assert np.array_equal(numerics.t_quantile(p, freedom), stats.t.ppf(p, freedom), equal_nan=True)
    for t in (0.0, -2.0, 50.0, np.inf, np.nan):
        assert np.array_equal(numerics.t_two_sided(t, freedom), 2 * stats.t.sf(abs(t), freedom), equal_nan=True)
    values = np.random.default_rng(0).integers(0, 9, 30)
    assert np.array_equal(numerics.mean_ranks(values), stats.rankdata(values))
    assert np.isnan(numerics.mean_ranks(np.array([1.0, np.nan]))).all() and not numerics.mean_ranks(np.array([])).size


def test_pointwise_information_by_hand() -> None:
    bits = pointwise_information(np.array([[4, 0], [2, 2]]))  # expected 3, 1 in both rows
    assert bits[0, 0] == pytest.approx(np.log2(4 / 3)) and np.isnan(bits[0, 1])
    assert bits[1].tolist() == pytest.approx([np.log2(2 / 3), 1.0])


def test_blocks_of_threads_beside_one_another_leave_what_was_before() -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, second = numerics.threads(1), numerics.threads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_num_threads() == 1, "the second is still at work"
        second.__exit__(None, None, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
