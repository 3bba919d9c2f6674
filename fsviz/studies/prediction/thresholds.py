"""Detect hard tasks with a threshold: fitted on half of the classes, tested on the other half."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from fsviz.errors import BadInput
from fsviz.numerics import finite
from fsviz.studies.prediction.measured import PredictionTasks, hardness
from fsviz.studies.prediction.tasks import PredictionSpec


class HardTaskDetection(TypedDict, total=False):
    """Hard-task detection with a measure.

    area, low, high  area under the ROC curve with its 95% interval; None without a curve, and `why`
    first, second    shares of "hard" and "easy" tasks that are predicted hard, on both halves of the classes
    """

    area: float | None
    low: float
    high: float
    threshold: float
    why: str
    first: dict[str, float]
    second: dict[str, float | None]
    table: list[list[int]]


@dataclass(frozen=True)
class Threshold:
    """A threshold on a measure and its ROC curve, on the half of the classes where it was fitted.

    fpr, tpr  (n,) the ROC curve; area under it with its 95% interval
    value     the threshold, in units of the measure; at is its point on the curve (fpr, tpr)
    """

    fpr: np.ndarray
    tpr: np.ndarray
    area: float
    low: float
    high: float
    value: float
    at: tuple[float, float]


def thresholds(spec: PredictionSpec, first: PredictionTasks, second: PredictionTasks) -> dict[str, HardTaskDetection]:
    """Hard-task detection with every measure: fitted on the first half of the classes, tested on both."""
    result: dict[str, HardTaskDetection] = {}
    level = spec["hard_below"] / 100
    for name in first.measures:
        try:
            curve = roc(first, name, level, spec["recall"] / 100)
        except BadInput as error:
            result[name] = {"area": None, "why": str(error)}
            continue
        table = confusion_table(second, name, level, curve.value)
        shares = [finite(row[0] / row.sum()) if row.sum() else None for row in table]
        result[name] = {
            "area": curve.area,
            "low": curve.low,
            "high": curve.high,
            "threshold": curve.value,
            "why": "",
            "first": {"hard": curve.at[1], "easy": curve.at[0]},
            "second": {"hard": shares[0], "easy": shares[1]},
            "table": table.tolist(),
        }
    return result


def roc(tasks: PredictionTasks, name: str, hard_below: float, sensitivity: float) -> Threshold:
    """ROC curve of a measure, and the threshold with at least this sensitivity.

    Tasks with an outcome below `hard_below` are hard.
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    hard, score = tasks.outcome < hard_below, hardness(name) * tasks.measures[name]
    is_defined = np.isfinite(score)
    hard, score = hard[is_defined], score[is_defined]
    if hard.all() or not hard.any():
        amount, advice = ("all", "Lower") if len(hard) and hard.all() else ("none", "Raise")
        raise BadInput(
            f"Detection needs hard and easy tasks: of {len(hard):,} tasks {amount} are hard. "
            f"{advice} the accuracy below which a task counts as hard."
        )
    fpr, tpr, thresholds = roc_curve(hard, score, drop_intermediate=False)
    index = int(np.argmax(tpr >= sensitivity - 1e-9))
    area = float(roc_auc_score(hard, score))
    half = _area_half_width(area, int(hard.sum()), int((~hard).sum()))
    return Threshold(
        fpr,
        tpr,
        area,
        max(0.0, area - half),
        min(1.0, area + half),
        hardness(name) * float(thresholds[index]),
        (float(fpr[index]), float(tpr[index])),
    )


def predicted_hard(tasks: PredictionTasks, name: str, threshold: float) -> np.ndarray:
    """Whether each task (T,) is predicted hard."""
    return hardness(name) * tasks.measures[name] >= hardness(name) * threshold


def confusion_table(tasks: PredictionTasks, name: str, hard_below: float, threshold: float) -> np.ndarray:
    """Task counts (2, 2): rows actually hard and easy, columns predicted hard and easy."""
    predicted, hard = predicted_hard(tasks, name, threshold), tasks.outcome < hard_below
    return np.array([[np.sum(r & c) for c in (predicted, ~predicted)] for r in (hard, ~hard)])


def _area_half_width(area: float, n_hard: int, n_easy: int) -> float:
    """1.96 standard errors of the area under a ROC curve (Hanley & McNeil 1982)."""
    both_hard, both_easy = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_hard - 1) * (both_hard - area**2) + (n_easy - 1) * (both_easy - area**2)
    return 1.96 * math.sqrt(max(spread, 0.0) / (n_hard * n_easy))
