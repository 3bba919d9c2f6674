"""Distance between two groups of classes as Gaussians, as in table 2 of Arnold & Sha (2021).

A group's Gaussian has the mean and the full covariance of its class features, plus 0.001 along every axis (section
A.2): five classes of a task span four axes, and nothing could be divided by the others. Dimensions: d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsviz.splits.clustering import DAMPING

TITLES = {
    "gaussian_symmetric_kl": "Symmetrised KL of Gaussians",
    "gaussian_kl": "Kullback-Leibler of Gaussians",
    "gaussian_wasserstein": "Wasserstein-2 of Gaussians",
}


@dataclass(frozen=True)
class Gaussian:
    """mean (d,), covariance (d, d) with the damping in it."""

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def around(cls, points: np.ndarray) -> Gaussian:
        """That of a group of points (n, d)."""
        centred = points - points.mean(axis=0)
        spread = centred.T @ centred / max(len(points) - 1, 1)
        return cls(points.mean(axis=0), spread + DAMPING * np.eye(points.shape[1]))

    @cached_property
    def precision(self) -> np.ndarray:
        return np.linalg.inv(self.covariance)

    @cached_property
    def log_volume(self) -> float:
        """log of the covariance's determinant."""
        return float(np.linalg.slogdet(self.covariance)[1])

    @cached_property
    def root(self) -> np.ndarray:
        """The symmetric matrix whose square is the covariance."""
        values, axes = np.linalg.eigh(self.covariance)
        return (axes * np.sqrt(np.maximum(values, 0))) @ axes.T


def kl(p: Gaussian, q: Gaussian) -> float:
    """KL(p, q) in nats."""
    apart = q.mean - p.mean
    mahalanobis = float(apart @ q.precision @ apart)
    return 0.5 * (float((q.precision * p.covariance).sum()) + mahalanobis - len(apart) + q.log_volume - p.log_volume)


def wasserstein(p: Gaussian, q: Gaussian) -> float:
    """|m_p - m_q|^2 + tr(S_p + S_q - 2 (S_p^1/2 S_q S_p^1/2)^1/2), its square root."""
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(p.root @ q.covariance @ p.root), 0)).sum()
    spreads = np.trace(p.covariance) + np.trace(q.covariance) - 2 * shared
    return float(np.sqrt(max(0.0, float(((p.mean - q.mean) ** 2).sum() + spreads))))


def divergences(p: Gaussian, q: Gaussian) -> dict[str, float]:
    """Every divergence of two Gaussians, by the names of TITLES."""
    forward, backward = kl(p, q), kl(q, p)
    return dict(zip(TITLES, (forward + backward, forward, wasserstein(p, q)), strict=True))
