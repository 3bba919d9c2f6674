"""Arrays in, arrays out: the small numerics that several rooms share."""

from __future__ import annotations

import numpy as np


def mean_and_ci95(values: np.ndarray, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Mean and half-width of its normal 95% interval (1.96 standard errors); NaNs are left out.

    One value has no interval: its half-width is NaN.
    """
    values = np.asarray(values, dtype=float)
    n = np.sum(~np.isnan(values), axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=axis) / n
        centred = values - np.expand_dims(mean, axis)
        variance = np.nansum(centred**2, axis=axis) / np.where(n > 1, n - 1, np.nan)
        half = 1.96 * np.sqrt(variance / n)
    return mean, half


def chunk_seed(run_seed: int, chunk: int) -> np.random.SeedSequence:
    """The seed of one chunk of work: the same in one process, a pool or a cluster."""
    return np.random.SeedSequence(entropy=run_seed, spawn_key=(chunk,))


def quantile_bins(values: np.ndarray, n_bins: int = 4) -> np.ndarray:
    """Bin 0..n_bins-1 of every value by rank, equal sizes up to one; ties keep their order."""
    values = np.asarray(values)
    order = np.argsort(values, kind="stable")
    bins = np.empty(len(values), dtype=np.int64)
    bins[order] = np.arange(len(values)) * n_bins // max(len(values), 1)
    return bins


def rolling_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over a sliding window, only where the window is full: length n - window + 1."""
    values = np.asarray(values, dtype=float)
    window = max(1, min(window, len(values)))
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[window:] - total[:-window]) / window
