"""Predictions -> accuracies per task, per class, per pair of classes, and against a measure.

T tasks, W ways, Q queries per class. Accuracies are fractions from 0 to 1, higher is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.numerics import mean_and_ci95, rolling_mean, sort_order
from fsviz.records import PAD, Predictions, Tasks


def correct_queries(predictions: Predictions) -> np.ndarray:
    """1 for every query that is right, 0 for one that is wrong, NaN if there is none (T, W, Q)."""
    return np.where(predictions.predicted == PAD, np.nan, predictions.rank == 0)


def task_accuracy(predictions: Predictions) -> np.ndarray:
    """Share of each task's queries that are right (T,); NaN for a task without queries."""
    return task_top_k(predictions, 1)


def task_top_k(predictions: Predictions, k: int) -> np.ndarray:
    """Share of each task's queries whose true class is among the k most probable (T,)."""
    if k < 1:
        raise BadInput(f"Top-k accuracy needs k of at least 1. Got {k}.")
    return predictions.task_mean(predictions.rank < k)


def task_confidence(predictions: Predictions) -> np.ndarray:
    """Mean over each task's queries of the largest probability (T,): what the method itself expects to get right."""
    return predictions.task_mean(predictions.confidence)


def mean_loss(predictions: Predictions) -> float:
    """Mean of the tasks' losses, in nats."""
    return float(np.nanmean(predictions.loss()))


def summary(predictions: Predictions, k: int = 5) -> dict[str, Any]:
    """Means over tasks with the half-widths of their 95% intervals, ready for JSON (None where undefined)."""
    result: dict[str, Any] = {"n_tasks": len(predictions), "k": k}
    for name, values in (
        ("accuracy", task_accuracy(predictions)),
        ("top_k", task_top_k(predictions, k)),
        ("loss", predictions.loss()),
        ("confidence", task_confidence(predictions)),
    ):
        mean, half = mean_and_ci95(values)
        result[name] = _plain(mean)
        result["ci95" if name == "accuracy" else f"{name}_ci95"] = _plain(half)
    return result


def accuracy_by_quantile(accuracy: np.ndarray, measure: np.ndarray, n_bins: int = 4) -> pd.DataFrame:
    """Mean accuracy of equal-sized groups of tasks, from the lowest to the highest measure.

    Columns bin (1..n_bins), low, high (of the measure), n_tasks, accuracy, ci95. Tasks without a finite
    accuracy or measure are excluded.
    """
    accuracy, measure = _finite_pairs(accuracy, measure)
    if not 1 <= n_bins <= len(measure):
        raise BadInput(
            f"The number of groups must be from 1 to {len(measure)}, the tasks that have the measure. Got {n_bins}."
        )
    order = sort_order(measure)
    accuracy, measure = accuracy[order], measure[order]
    edges = [-(-b * len(order) // n_bins) for b in range(n_bins + 1)]
    rows = []
    for b, (start, stop) in enumerate(pairwise(edges)):
        mean, half = mean_and_ci95(accuracy[start:stop])
        rows.append((b + 1, measure[start], measure[stop - 1], stop - start, float(mean), float(half)))
    return pd.DataFrame(rows, columns=["bin", "low", "high", "n_tasks", "accuracy", "ci95"])


def quantile_groups(measure: np.ndarray, n_bins: int = 4, usable: np.ndarray | None = None) -> np.ndarray:
    """The group (1..n_bins) of every task as `accuracy_by_quantile` cuts them; 0 for tasks that are excluded.

    usable  (T,) tasks with a finite accuracy; unless said, all
    """
    there = np.isfinite(measure) if usable is None else np.isfinite(measure) & usable
    places = np.flatnonzero(there)[sort_order(measure[there])]
    groups = np.zeros(len(measure), dtype=int)
    for b in range(n_bins):
        groups[places[-(-b * len(places) // n_bins) : -(-(b + 1) * len(places) // n_bins)]] = b + 1
    return groups


def varies(measure: np.ndarray) -> bool:
    """Whether a measure (T,) differs between tasks by more than rounding; NaNs are excluded."""
    finite = measure[np.isfinite(measure)]
    return bool(len(finite) and np.ptp(finite) > 1e-9 * np.abs(finite).max())


def window_starts(n_tasks: int, window: int, most: int | None = None) -> np.ndarray:
    """Start positions of a sliding window of tasks: all, or `most` of them evenly spaced from first to last."""
    n = n_tasks - window + 1
    return np.arange(n) if most is None or n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(int))


def rolling_accuracy(
    accuracy: np.ndarray, measure: np.ndarray, window: int | None = None, most: int | None = None
) -> pd.DataFrame:
    """Accuracy against a measure: means over a sliding window of tasks sorted by it.

    window defaults to a tenth of the tasks (at least 20). Columns measure, accuracy, ci95: one row per full window, or
    `most` of them, evenly spaced from the first to the last. Tasks of the same measure have no order of their own: each
    counts as their mean, so that the order in which they were sampled changes nothing.
    """
    accuracy, measure = _finite_pairs(accuracy, measure)
    if len(measure) == 0:
        raise BadInput("No task has both an accuracy and the measure, so there is nothing to plot. Measure them first.")
    if window is None:
        window = max(20, len(measure) // 10)
    window = int(np.clip(window, 1, len(measure)))
    order = sort_order(measure)
    accuracy, measure = accuracy[order], measure[order]
    starts = window_starts(len(measure), window, most)
    centre = accuracy.mean()  # squares around the mean lose no digits
    squares = (accuracy - centre) ** 2
    first = np.flatnonzero(np.r_[True, np.diff(measure) > 1e-9 * np.abs(measure[1:])])  # equal but for rounding
    if len(first) < len(measure):
        equal = np.diff(np.r_[first, len(measure)])
        accuracy, squares = (np.repeat(np.add.reduceat(v, first) / equal, equal) for v in (accuracy, squares))
    mean = rolling_mean(accuracy, window, starts)
    spread = rolling_mean(squares, window, starts) - (mean - centre) ** 2
    half = 1.96 * np.sqrt(np.maximum(spread, 0) / (window - 1)) if window > 1 else np.full_like(mean, np.nan)
    return pd.DataFrame({"measure": rolling_mean(measure, window, starts), "accuracy": mean, "ci95": half})


def class_accuracy(predictions: Predictions, tasks: Tasks) -> pd.DataFrame:
    """Accuracy on the queries of every class, over the tasks that hold it; lowest first.

    Columns class_id, n_tasks, n_queries (predictions), n_images (different query images, NaN if unknown), accuracy
    (over queries), ci95 (over tasks).
    """
    there = predictions.predicted != PAD
    n_queries = there.sum(2)
    used = n_queries > 0
    class_ids = tasks.class_ids[used]
    right = ((predictions.rank == 0) & there).sum(2)[used]
    frame = pd.DataFrame({"class_id": class_ids, "asked": n_queries[used], "right": right})
    frame["share"] = frame["right"] / frame["asked"]
    grouped = frame.groupby("class_id")
    t, w, q = np.nonzero(there if tasks.has_images else np.zeros_like(there))
    images = pd.DataFrame({"class_id": tasks.class_ids[t, w], "image_id": tasks.query[t, w, q]})
    table = pd.DataFrame(
        {
            "n_tasks": grouped.size(),
            "n_queries": grouped["asked"].sum(),
            "n_images": images.groupby("class_id")["image_id"].nunique(),
            "accuracy": grouped["right"].sum() / grouped["asked"].sum(),
            "ci95": 1.96 * grouped["share"].sem(),
        }
    )
    return table.reset_index().sort_values(["accuracy", "class_id"], ignore_index=True)


_PAIR_ENTRIES = 4_000_000  # pairs of ways of the tasks that are counted together
MIN_PAIR_TASKS = 3  # tasks that hold both classes of a pair: of fewer, an interval says little


@dataclass(frozen=True)
class PairConfusion:
    """Confusion of every ordered pair of classes, over the tasks with both.

    class_ids (K,); confused[i, j] queries of class i predicted as class j, with correct predictions on the diagonal;
    n_queries[i, j] queries of class i in tasks that hold class j; n_tasks[i, j] such tasks; ci95[i, j] half width of
    the interval of `rate` over them, NaN if there are fewer than MIN_PAIR_TASKS.
    """

    class_ids: np.ndarray
    confused: np.ndarray
    n_queries: np.ndarray
    n_tasks: np.ndarray
    ci95: np.ndarray

    @property
    def rate(self) -> np.ndarray:
        """confused / n_queries (K, K); NaN if the two never met."""
        with np.errstate(invalid="ignore"):
            return np.where(self.n_queries > 0, self.confused / np.maximum(self.n_queries, 1), np.nan)

    def worst(self, n: int = 20) -> pd.DataFrame:
        """The n ordered pairs with the highest lower end of the interval of their rate, then those without one.

        Columns class_id, taken_for, confused, queries, tasks, rate, ci95.
        """
        rate = self.rate
        np.fill_diagonal(rate, np.nan)
        flat = np.flatnonzero(rate > 0)
        low = np.nan_to_num((rate - self.ci95).ravel()[flat], nan=-np.inf)
        order = np.lexsort((-self.confused.ravel()[flat], -rate.ravel()[flat], -low))[:n]
        i, j = np.unravel_index(flat[order], rate.shape)
        return pd.DataFrame(
            {
                "class_id": self.class_ids[i],
                "taken_for": self.class_ids[j],
                "confused": self.confused[i, j],
                "queries": self.n_queries[i, j],
                "tasks": self.n_tasks[i, j],
                "rate": rate[i, j],
                "ci95": self.ci95[i, j],
            }
        )


def pair_confusion(predictions: Predictions, tasks: Tasks) -> PairConfusion:
    """Confusion of every ordered pair of classes, over all tasks."""
    class_ids, place = np.unique(tasks.class_ids, return_inverse=True)
    place = place.reshape(tasks.class_ids.shape)
    if class_ids[0] == PAD:
        class_ids, place = class_ids[1:], place - 1
    k, n_way = len(class_ids), tasks.class_ids.shape[1]
    sums = np.zeros((6, k * k))
    size = max(1, _PAIR_ENTRIES // n_way**2)
    for start in range(0, len(tasks), size):
        sums += _pair_sums(predictions.predicted[start : start + size], place[start : start + size], k)
    confused, n_queries, n_tasks, *squares = sums.reshape(6, k, k)
    ci95 = _ratio_ci95(confused, n_queries, n_tasks, squares)
    return PairConfusion(class_ids, confused.astype(int), n_queries.astype(int), n_tasks.astype(int), ci95)


def _pair_sums(predicted: np.ndarray, place: np.ndarray, k: int) -> np.ndarray:
    """(6, k²) sums over tasks for every ordered pair: count predicted as the second, queries of the first, tasks, and
    count², count queries, queries².

    predicted (T, W, Q) ways; place (T, W) of the tasks' classes, negative for none
    """
    n_tasks, n_way, _ = predicted.shape
    t, w, q = np.nonzero(predicted != PAD)
    flat = (t * n_way + w) * n_way + predicted[t, w, q]
    counts = np.bincount(flat, minlength=n_tasks * n_way**2).reshape(n_tasks, n_way, n_way)
    is_way = place >= 0
    t, w, v = np.nonzero(is_way[:, :, None] & is_way[:, None, :])
    pair = place[t, w] * k + place[t, v]
    count, queries = counts[t, w, v], (predicted != PAD).sum(2)[t, w]
    values = (count, queries, queries > 0, count**2, count * queries, queries**2)
    return np.stack([np.bincount(pair, value, minlength=k * k) for value in values])


def _ratio_ci95(
    counts: np.ndarray, totals: np.ndarray, n_tasks: np.ndarray, squares: Sequence[np.ndarray]
) -> np.ndarray:
    """Half width of the 95% interval over tasks of counts / totals, NaN for fewer than MIN_PAIR_TASKS tasks.

    squares  sums over tasks of count², count total and total²
    The error is at least that of so many independent predictions, so tasks that happen to agree are not certain.
    """
    from scipy.stats import t

    enough = n_tasks >= MIN_PAIR_TASKS
    n, n_predictions = np.where(enough, n_tasks, 2), np.maximum(totals, 1)
    rate = counts / n_predictions
    between = np.maximum(squares[0] - 2 * rate * squares[1] + rate**2 * squares[2], 0) * n / (n - 1) / n_predictions**2
    shrunk = (counts + 0.5) / (n_predictions + 1)
    error = np.sqrt(np.maximum(between, shrunk * (1 - shrunk) / n_predictions))
    return np.where(enough, t.ppf(0.975, n - 1) * error, np.nan)


def _finite_pairs(accuracy: np.ndarray, measure: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    accuracy, measure = np.asarray(accuracy, dtype=float), np.asarray(measure, dtype=float)
    if accuracy.shape != measure.shape:
        raise BadInput(
            f"Accuracies and measure must be of the same tasks. Got {len(accuracy)} and {len(measure)} numbers."
        )
    both = np.isfinite(accuracy) & np.isfinite(measure)
    return (accuracy, measure) if both.all() else (accuracy[both], measure[both])


def _plain(value: np.ndarray) -> float | None:
    return float(value) if np.isfinite(value) else None
