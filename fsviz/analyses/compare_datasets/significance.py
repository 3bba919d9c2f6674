"""Differences between datasets, measure by measure, and their significance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fsviz.analyses.compare_datasets.measuring import ACCURACY, ComparisonSpec, DatasetComparison, MeasureEstimate
from fsviz.difficulty.measures import MEASURES
from fsviz.evaluation import Estimate
from fsviz.methods import METHODS

_OF_ONE_DATASET = {
    "attributes": "Attributes of different datasets are not comparable.",
    "train_divergence": "Training classes of different datasets are not comparable.",
}


Verdict = Literal["harder", "easier", "noise", "unknown"]


@dataclass(frozen=True)
class MeasureDifference:
    """The difference in one measure between the first dataset and a second one.

    verdict   of the first dataset; "noise" if the 95% CI of the difference over classes contains 0
    here      the same over tasks: on these classes and images only
    estimate  mean of the first dataset minus that of the second
    effect    the same in standard deviations of tasks, and `effect_ci95`; positive if the first dataset is harder
    why       the reason if it is not available
    """

    measure: str
    first: str
    second: str
    verdict: Verdict
    estimate: Estimate | None = None
    over: str = ""
    why: str = ""
    here: Verdict = "unknown"
    effect: float = float("nan")
    effect_ci95: float = float("nan")


# What differs ------------------------------------------------------------------------------------------------------


def differences(comparison: DatasetComparison, first: str = "") -> list[MeasureDifference]:
    """The differences between the first dataset (or the given one) and each other one, measure by measure."""
    first = first or comparison.sides[0].name
    return [
        difference(comparison, name, first, side.name)
        for side in comparison.sides
        if side.name != first
        for name in comparison.requested
    ]


def difference(comparison: DatasetComparison, measure: str, first: str, second: str) -> MeasureDifference:
    """The difference of one measure; "unknown" with the reason if it is not available or not comparable."""
    numbers = comparison.numbers.get(measure, {})
    for name in (first, second):
        if name not in numbers:
            return MeasureDifference(measure, first, second, "unknown", why=comparison.unknown[measure][name])
    needs = MEASURES[measure].needs if measure in MEASURES else ()
    reasons = [why for need, why in _OF_ONE_DATASET.items() if need in needs]
    if reasons and comparison.side(first).dataset.name != comparison.side(second).dataset.name:
        return MeasureDifference(measure, first, second, "unknown", why=reasons[0])
    return _difference_of(measure, first, second, numbers[first], numbers[second])


def _difference_of(
    measure: str, first: str, second: str, estimate: MeasureEstimate, two: MeasureEstimate
) -> MeasureDifference:
    order = _ordered(estimate.estimate, two.estimate)
    over = estimate.ci_unit if estimate.ci_unit == two.ci_unit else "tasks or classes"
    sign = 1 if direction(measure) == "harder" else -1
    spread = float(np.sqrt((estimate.values.var() + two.values.var()) / 2))
    scale = 1 / spread if spread else float("nan")
    return MeasureDifference(
        measure,
        first,
        second,
        _verdict(order, sign),
        order,
        over,
        here=_verdict(_ordered(estimate.here, two.here), sign),
        effect=sign * order.mean * scale,
        effect_ci95=order.ci95 * scale,
    )


def _ordered(a: Estimate, b: Estimate) -> Estimate:
    """The difference of two independent means (Welch)."""
    squares = np.array([a.error**2, b.error**2])
    total = float(squares.sum())
    freedom = np.inf
    if total and np.isfinite([a.freedom, b.freedom]).any():
        freedom = total**2 / float((squares**2 / np.array([a.freedom, b.freedom])).sum())
    return Estimate(a.mean - b.mean, total**0.5, freedom)


def _verdict(estimate: Estimate, sign: int) -> Verdict:
    if not abs(estimate.mean) > estimate.ci95:
        return "noise"
    return "harder" if sign * estimate.mean > 0 else "easier"


def direction(measure: str) -> str:
    """Whether a task with a higher value is harder or easier."""
    return "easier" if measure == ACCURACY else MEASURES[measure].direction


def title(measure: str, spec: ComparisonSpec) -> str:
    return f"Accuracy of {METHODS[spec['method']].title} (%)" if measure == ACCURACY else MEASURES[measure].title


def format_value(value: float, measure: str) -> str:
    """A value of a measure, as a sentence says it."""
    return f"{value:.1f}%" if measure == ACCURACY else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
