"""Variance in task accuracy that other numbers of the tasks explain, in all and per group.

    numbers of the tasks -> a regression learned on four fifths of them -> the accuracy it expects of the last fifth

The regression is a sum of smooth curves, one per number (splines over ranks, shrunk by ridge regression), so that what
it expects of a task is the sum of what each number adds. Everything is said of tasks that the regression has not
learned from; tasks of the same classes are learned from together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsviz.errors import BadInput
from fsviz.evaluation.intervals import of_influence
from fsviz.records import PAD

FOLDS = 5
SHUFFLES = 20  # of a group's numbers among the tasks that were held out
LEAST_TASKS = 50
_KNOTS = 4
_SHRINKING = 10.0 ** np.arange(-1, 6)


@dataclass(frozen=True)
class VarianceShare:
    """A share of the variance of the accuracy, with its 95% interval, and `sure`, the lower end of an interval that is
    wide enough for the largest of several shares to be beyond chance."""

    value: float
    low: float
    high: float
    sure: float
    ci_unit: str


@dataclass(frozen=True)
class VarianceExplained:
    """Accuracy of T tasks as explained by a regression on numbers of the tasks.

    expected   (T,) accuracy that the regression expects, of tasks it has not learned from; NaN if none is known
    middle     (T,) mean accuracy of the tasks it learned from: what it would expect of a task it knows nothing of
    added      by group of numbers, (T,) what the group adds to that; expected is the sum of all, and the middle
    total      the share of the variance that is explained; below zero if the middle would have been nearer
    lost       by group, the share that is lost without it: half of what is lost when its numbers are shuffled among
               the tasks, because a shuffled number lacks what it knew and adds as much noise
    alone      by group, the share that the group explains without the others
    """

    expected: np.ndarray
    middle: np.ndarray
    added: Mapping[str, np.ndarray]
    total: VarianceShare
    lost: Mapping[str, VarianceShare]
    alone: Mapping[str, VarianceShare]


def explain(
    numbers: Mapping[str, np.ndarray],
    accuracy: np.ndarray,
    groups: Mapping[str, Sequence[str]],
    class_ids: np.ndarray,
    seed: int = 0,
) -> VarianceExplained:
    """Share of the variance in accuracy (T,) that these numbers (T,) explain, in all and per group.

    class_ids  (T, W) of the tasks: intervals are over classes where tasks have different ones
    """
    accuracy = np.asarray(accuracy, dtype=float)
    finite = np.isfinite(accuracy)
    names = [name for group in groups.values() for name in group]
    if finite.sum() < LEAST_TASKS:
        raise BadInput(
            f"Explaining accuracy needs at least {LEAST_TASKS} tasks. Got {int(finite.sum())}. Sample more tasks."
        )
    if not names:
        raise BadInput("Explaining accuracy needs a measure that differs between tasks. Sample other tasks.")
    x = np.stack([np.asarray(numbers[name], dtype=float)[finite] for name in names], axis=1)
    y, class_ids = accuracy[finite], class_ids[finite]
    folds = _folds(class_ids, seed)
    middle = np.empty(len(y))
    for fold in range(FOLDS):
        middle[folds == fold] = y[folds != fold].mean()
    columns = {name: [names.index(number) for number in group] for name, group in groups.items() if group}
    expected, added, worse = _held_out(x, y, middle, folds, columns, seed)
    missed, missed_blindly = (y - expected) ** 2, (y - middle) ** 2

    by_heart = _by_heart(x, y, class_ids)

    def share(saved: np.ndarray, group: Sequence[int] | slice = slice(None), several: int = 1) -> VarianceShare:
        return _share(saved, missed_blindly, class_ids, several, float(by_heart[group].sum()))

    alone = {}
    for name, group in columns.items():
        by_group = _held_out(x[:, group], y, middle, folds, {}, seed)[0]
        alone[name] = share(missed_blindly - (y - by_group) ** 2, group, len(columns))
    return VarianceExplained(
        _spread(expected, finite),
        _spread(middle, finite),
        {name: _spread(values, finite) for name, values in added.items()},
        share(missed_blindly - missed),
        {name: share(values, columns[name], len(columns)) for name, values in worse.items()},
        alone,
    )


def sampling_noise(accuracy: np.ndarray, n_queries: np.ndarray) -> float:
    """The share of the variance of the accuracy (T,) that the draw of so many queries (T,) alone would bring, at most:
    as if every query of a task were as hard as the others. No measure that does not see the answers explains it."""
    spread = np.nanvar(accuracy, ddof=1)
    by_chance = np.nanmean(accuracy * (1 - accuracy) / np.maximum(n_queries - 1, 1))
    return float(np.clip(by_chance / spread, 0, 1)) if spread > 0 else float("nan")


def _folds(class_ids: np.ndarray, seed: int) -> np.ndarray:
    """The fold (T,) of every task. Tasks of the same classes share one; where all are, each has its own."""
    sets, which = np.unique(np.sort(class_ids, axis=1), axis=0, return_inverse=True)
    which = which.ravel() if len(sets) >= 2 * FOLDS else np.arange(len(class_ids))
    order = np.random.default_rng(seed).permutation(which.max() + 1)
    return order[which] % FOLDS


def _held_out(
    x: np.ndarray,
    y: np.ndarray,
    middle: np.ndarray,
    folds: np.ndarray,
    columns: Mapping[str, Sequence[int]],
    seed: int,
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Expected accuracy (T,), learned from the other folds; by group, its contribution (T,) and its loss (T,).

    The loss is half the growth of the squared error when the group's numbers are shuffled within the fold.
    """
    expected = np.empty(len(y))
    added = {name: np.zeros(len(y)) for name in columns}
    worse = {name: np.zeros(len(y)) for name in columns}
    rng = np.random.default_rng(seed)
    for fold in range(FOLDS):
        out = np.flatnonzero(folds == fold)
        model = _regression(int((folds != fold).sum())).fit(x[folds != fold], y[folds != fold])
        curves = _curves(model, x[out])
        expected[out] = middle[out] + curves.sum(axis=1)
        missed = (y[out] - expected[out]) ** 2
        for name, group in columns.items():
            own = added[name][out] = curves[:, group].sum(axis=1)
            shuffled = rng.permuted(np.tile(own, (SHUFFLES, 1)), axis=1)
            worse[name][out] = (((y[out] - expected[out] + own - shuffled) ** 2).mean(axis=0) - missed) / 2
    return expected, added, worse


def _regression(n_tasks: int) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, SplineTransformer, StandardScaler

    return make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True),
        QuantileTransformer(n_quantiles=min(n_tasks, 200)),
        SplineTransformer(n_knots=_KNOTS, degree=2),
        StandardScaler(),
        RidgeCV(alphas=_SHRINKING),
    )


def _curves(model: Any, x: np.ndarray) -> np.ndarray:
    """Contribution (T, K) of each number to the expected accuracy.

    The constant of the regression is the mean accuracy of its training tasks: the terms are centred there.
    """
    terms = model[:-1].transform(x) * model[-1].coef_
    return terms.reshape(len(x), x.shape[1], -1).sum(axis=2)


def _share(
    saved: np.ndarray, missed: np.ndarray, class_ids: np.ndarray, several: int, by_heart: float
) -> VarianceShare:
    """The mean of what is saved (T,) as a share of the mean of what is missed blindly (T,).

    by_heart  the share that numbers without any meaning would explain: the interval reaches as much further down
    """
    from scipy import stats

    total = missed.mean()
    if total <= 0:
        return VarianceShare(float("nan"), float("nan"), float("nan"), float("nan"), "tasks")
    value = float(saved.mean() / total)
    error, over = of_influence(value, (saved - value * missed) / total, class_ids)
    half, sure = (float(stats.t.ppf(1 - 0.025 / n, error.freedom)) * error.error for n in (1, several))
    return VarianceShare(value, value - by_heart - half, value + half, value - by_heart - sure, over)


def _by_heart(x: np.ndarray, y: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    """The share of the variance of y that each number (K,) would explain if it meant nothing.

    The classes of a task that is held out were in others that taught. A number that hangs on the classes alone can
    learn by heart what each class does to the accuracy: of C - 1 differences between classes it gets one right.
    """
    classes = np.unique(class_ids[class_ids != PAD])
    present = (class_ids[:, :, None] == classes).any(axis=1).astype(float)  # (T, C)
    if (present == present[0]).all():
        return np.zeros(x.shape[1])  # all tasks have the same classes, which part none of them
    filled = np.where(np.isfinite(x), x, np.nanmean(np.where(np.isfinite(x), x, np.nan), axis=0))
    values = np.column_stack([y, filled])
    values = values - values.mean(axis=0)
    n_tasks, n_classes = present.shape
    residual = values - present @ np.linalg.lstsq(present, values, rcond=None)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        unexplained = np.square(residual).sum(0) / np.square(values).sum(0)
    # What classes that did nothing would explain is taken off; too few tasks to tell count as explained.
    by_class = (
        1 - unexplained * (n_tasks - 1) / (n_tasks - n_classes) if n_tasks > n_classes else np.ones(len(unexplained))
    )
    by_class = np.clip(np.nan_to_num(by_class, nan=0.0), 0, 1)
    return by_class[0] * by_class[1:] / max(n_classes - 1, 1)


def _spread(values: np.ndarray, finite: np.ndarray) -> np.ndarray:
    """Values of the known tasks, at the places of all."""
    result = np.full(len(finite), np.nan)
    result[finite] = values
    return result
