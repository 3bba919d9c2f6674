"""Divergences of Gaussians against values by hand and against another way to compute them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

from fsviz.splits.gaussians import TITLES, Gaussian, divergences, kl, wasserstein


def test_one_axis_by_hand() -> None:
    p, q = Gaussian(np.array([0.0]), np.array([[1.0]])), Gaussian(np.array([3.0]), np.array([[4.0]]))
    # KL = log(2) + (1 + 9) / 8 - 1/2 one way, -log(2) + (4 + 9) / 2 - 1/2 the other; W2^2 = 3^2 + (2 - 1)^2
    assert kl(p, q) == pytest.approx(np.log(2) + 0.75) and kl(q, p) == pytest.approx(6 - np.log(2))
    assert wasserstein(p, q) == pytest.approx(np.sqrt(10)) == wasserstein(q, p)
    result = divergences(p, q)
    assert list(result) == list(TITLES) and result["gaussian_symmetric_kl"] == pytest.approx(6.75)


def test_a_group_has_its_own_mean_and_covariance_and_some_damping() -> None:
    points = np.random.default_rng(0).normal(size=(6, 4))
    item = Gaussian.around(points)
    assert item.covariance == pytest.approx(np.cov(points.T) + 0.001 * np.eye(4))
    assert all(value == pytest.approx(0, abs=1e-6) for value in divergences(item, item).values())
    single = Gaussian.around(points[:1])
    assert single.covariance == pytest.approx(0.001 * np.eye(4)) and np.isfinite(kl(item, single))


def test_full_covariances_count() -> None:
    """Compared with samples for KL, and with matrix roots for Wasserstein-2; variances along the axes alone differ."""
    rng = np.random.default_rng(1)
    p, q = (Gaussian.around(rng.normal(size=(8, 3)) @ rng.normal(size=(3, 3))) for _ in range(2))
    sampled = rng.multivariate_normal(p.mean, p.covariance, 200_000)
    densities = [multivariate_normal(g.mean, g.covariance).logpdf(sampled) for g in (p, q)]
    assert kl(p, q) == pytest.approx(np.mean(densities[0] - densities[1]), rel=0.05)
    root = sqrtm(p.covariance)
    bures = np.trace(p.covariance + q.covariance - 2 * np.real(sqrtm(root @ q.covariance @ root)))
    assert wasserstein(p, q) ** 2 == pytest.approx(((p.mean - q.mean) ** 2).sum() + bures)
    flat = [Gaussian(g.mean, np.diag(np.diag(g.covariance))) for g in (p, q)]
    assert wasserstein(*flat) != pytest.approx(wasserstein(p, q), rel=1e-3)
