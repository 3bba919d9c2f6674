"""A threshold that calls tasks hard: learned on one half of the classes, tried on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from fsviz.errors import BadInput
from fsviz.numerics import finite
from fsviz.studies.prediction.measured import Measured, hardness
from fsviz.studies.prediction.tasks import Spec


class Judged(TypedDict, total=False):
    """How well a measure tells hard tasks from easy ones: the area under its ROC curve with its 95% interval, None
    where there is no curve, and `why`; shares of "hard" and "easy" tasks that it calls hard on both halves."""

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
    """Tasks called hard above a threshold of how hard a measure says they are, on the half where it was chosen.

    fpr, tpr  (n,) the ROC curve; area under it with its 95% interval
    value     the threshold, in units of the measure; at is its place on the curve (fpr, tpr)
    """

    fpr: np.ndarray
    tpr: np.ndarray
    area: float
    low: float
    high: float
    value: float
    at: tuple[float, float]


def thresholds(spec: Spec, first: Measured, second: Measured) -> dict[str, Judged]:
    """Per measure: the area under its ROC curve on the first half of the classes with its 95% interval, the threshold,
    and the shares of hard and easy tasks that it calls hard on both halves; `why` where there is no curve."""
    result: dict[str, Judged] = {}
    level = spec["hard_below"] / 100
    for name in first.measures:
        try:
            curve = roc(first, name, level, spec["found"] / 100)
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


def roc(found: Measured, name: str, hard_below: float, sensitivity: float) -> Threshold:
    """The ROC curve of a measure for tasks whose outcome is below `hard_below`, and the threshold that calls at least
    this share of the hard tasks hard."""
    from sklearn.metrics import roc_auc_score, roc_curve

    hard, score = found.outcome < hard_below, hardness(name) * found.measures[name]
    known = np.isfinite(score)
    hard, score = hard[known], score[known]
    if hard.all() or not hard.any():
        which, advice = ("all", "lower") if len(hard) and hard.all() else ("none", "raise")
        raise BadInput(
            f"Hard or easy needs tasks of both kinds: of {len(hard):,} tasks {which} are hard. "
            f"{advice.capitalize()} the accuracy below which a task counts as hard."
        )
    fpr, tpr, thresholds = roc_curve(hard, score, drop_intermediate=False)
    chosen = int(np.argmax(tpr >= sensitivity - 1e-9))
    area = float(roc_auc_score(hard, score))
    half = _area_half_width(area, int(hard.sum()), int((~hard).sum()))
    return Threshold(
        fpr,
        tpr,
        area,
        max(0.0, area - half),
        min(1.0, area + half),
        hardness(name) * float(thresholds[chosen]),
        (float(fpr[chosen]), float(tpr[chosen])),
    )


def called_hard(found: Measured, name: str, threshold: float) -> np.ndarray:
    """Which tasks (T,) a threshold calls hard."""
    return hardness(name) * found.measures[name] >= hardness(name) * threshold


def confusion_table(found: Measured, name: str, hard_below: float, threshold: float) -> np.ndarray:
    """Tasks (2, 2): rows hard and easy in truth, columns called hard and easy."""
    called, hard = called_hard(found, name, threshold), found.outcome < hard_below
    return np.array([[np.sum(r & c) for c in (called, ~called)] for r in (hard, ~hard)])


def _area_half_width(area: float, n_hard: int, n_easy: int) -> float:
    """1.96 standard errors of the area under a ROC curve (Hanley & McNeil 1982)."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_hard - 1) * (one - area**2) + (n_easy - 1) * (two - area**2)
    return 1.96 * math.sqrt(max(spread, 0.0) / (n_hard * n_easy))
