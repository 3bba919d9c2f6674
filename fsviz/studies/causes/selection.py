"""Tasks selected by their ranks, and how they differ from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.difficulty.measures import EASY_PHRASES, HARD_PHRASES, Cause
from fsviz.errors import BadInput, UnknownName
from fsviz.evaluation import VarianceExplained
from fsviz.methods import METHODS
from fsviz.records import Dataset, Predictions
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.studies.causes.explaining import harder, varied
from fsviz.studies.causes.spec import MeasuredTasks

BRUSH = Setting(
    "brush",
    "Chosen tasks",
    "Ranges that tasks are chosen by, such as accuracy~0.2~0.6;coarsity~10~25; the hardest tenth where empty.",
    "text",
    "",
)
FEW = 0.1  # the share of tasks that count as the hardest
ACCURACY, EXPECTED, RANK = "accuracy", "expected", "rank "


def ranks(measured: MeasuredTasks) -> dict[str, np.ndarray]:
    """By measure, where every task (T,) stands among these: 0 the easiest, 1 the hardest by this measure."""
    from scipy.stats import rankdata

    told = {}
    for name in varied(measured):
        values = harder(name, measured.measures[name])
        there = np.isfinite(values)
        told[name] = np.full(len(values), np.nan)
        told[name][there] = (rankdata(values[there]) - 0.5) / there.sum()
    return told


def brush_text(ranges: Mapping[str, tuple[float, float]]) -> str:
    """The text that `chosen` reads: axis~low~high, separated by semicolons."""
    return ";".join(f"{axis}~{min(ends):.6g}~{max(ends):.6g}" for axis, ends in ranges.items())


def chosen(
    measured: MeasuredTasks, method: str, brush: str = "", variance: VarianceExplained | None = None
) -> np.ndarray:
    """Which tasks (T,) a brush chooses; the hardest tenth where it is empty.

    An axis is "accuracy", "expected", a measure, or "rank " and a measure: where it stands among these tasks.
    """
    accuracy = measured.accuracy[method]
    if not brush:
        few = max(1, round(FEW * np.isfinite(accuracy).sum()))
        order = np.argsort(np.where(np.isfinite(accuracy), accuracy, np.inf), kind="stable")
        return np.isin(np.arange(len(measured)), order[:few])
    which = np.ones(len(measured), dtype=bool)
    for part in brush.split(";"):
        axis, *ends = part.split("~")
        try:
            low, high = (float(end) for end in ends)
        except ValueError:
            raise BadInput(f"A range of tasks is written axis~low~high: accuracy~0.2~0.6. Got {part[:40]!r}.") from None
        with np.errstate(invalid="ignore"):
            values = _axis_values(measured, method, axis, variance)
            which &= (values >= low) & (values <= high)
    return which


def _axis_values(measured: MeasuredTasks, method: str, axis: str, variance: VarianceExplained | None) -> np.ndarray:
    if axis == ACCURACY:
        return measured.accuracy[method]
    if axis == EXPECTED and variance is not None:
        return variance.expected
    if axis.startswith(RANK) and axis.removeprefix(RANK) in varied(measured):
        return ranks(measured)[axis.removeprefix(RANK)]
    if axis in measured.measures:
        return measured.measures[axis]
    axes = [ACCURACY, *measured.measures, *([EXPECTED] if variance else [])]
    raise UnknownName("axis of chosen tasks", axis, axes)


def extremes(measured: MeasuredTasks, which: np.ndarray) -> pd.DataFrame:
    """How the chosen tasks stand in every measure among all: rank (0.5 is the middle, 1 the hardest), its 95% interval
    over classes low and high, and whether that is beyond chance with as many measures looked at."""
    from scipy import stats

    rows = []
    table = ranks(measured)
    for name, values in table.items():
        there = np.isfinite(values)
        n = int((which & there).sum())
        if n < 2 or n == there.sum():
            continue
        mean = float(values[which & there].mean())
        influence = np.where(which, values - mean, 0.0)[there] * (there.sum() / n)
        error, _ = evaluation.of_influence(mean, influence, measured.tasks.class_ids[there])
        half, sure = (float(stats.t.ppf(1 - 0.025 / m, error.freedom)) * error.error for m in (1, len(table)))
        beyond = abs(mean - 0.5) > sure
        rows.append({"measure": name, "rank": mean, "low": mean - half, "high": mean + half, "beyond": beyond})
    return pd.DataFrame(rows, columns=["measure", "rank", "low", "high", "beyond"])


def selection_breakdown(
    measured: MeasuredTasks, method: str, variance: VarianceExplained, which: np.ndarray
) -> dict[str, float]:
    """Difference of the selected tasks from all, in accuracy (0 to 1): "below" the mean of all, by cause what the
    regression puts down to it, and "left" unexplained: luck, and causes that nobody measured."""
    accuracy = measured.accuracy[method]
    there = which & np.isfinite(variance.expected)
    if not there.any():
        raise BadInput("No task is chosen. Choose a wider range.")
    below = float(np.nanmean(accuracy) - accuracy[there].mean())
    by_cause = {cause: -float(values[there].mean()) for cause, values in variance.added.items()}
    return {"below": below, **by_cause, "left": below - sum(by_cause.values())}


def describe_selection(measured: MeasuredTasks, method: str, variance: VarianceExplained, which: np.ndarray) -> str:
    """The same in a sentence."""
    parts = selection_breakdown(measured, method, variance, which)
    below, left = parts.pop("below"), parts.pop("left")
    n = int(which.sum())
    told = f"The {n:,} chosen tasks lie {abs(100 * below):.1f} points {'below' if below >= 0 else 'above'} the mean"
    if variance.total.low <= 0:
        return told + "; no cause explains the accuracy of these tasks beyond chance."
    sign, why = (1, HARD_PHRASES) if below >= 0 else (-1, EASY_PHRASES)
    points = {cause: 100 * sign * value for cause, value in sorted(parts.items(), key=lambda pair: -pair[1] * sign)}
    sure = {cause: n for cause, n in points.items() if n > 0.5 and variance.lost[cause].sure > 0}
    named = [f"{n:.1f} because {why[cast(Cause, cause)]}" for cause, n in sure.items()]
    by = f": by what was measured, {', '.join(named)}" if named else ": nothing that was measured says why"
    rest = sum(points.values()) - sum(sure.values())
    others = f", {rest:.1f} by causes that are within chance" if named and abs(rest) >= 0.05 else ""
    left = 100 * sign * left + (0 if named else rest)
    return f"{told}{by}{others}; {left:.1f} are left to luck and to what nobody measured."


def predictions(dataset: Dataset, measured: MeasuredTasks, method: str, task: int) -> Predictions | None:
    """Predictions of the built-in method of this title for one task; None for other methods."""
    name = next((name for name, one in METHODS.items() if one.title == method), None)
    if name is None:
        return None
    tasks = measured.tasks.take(np.array([task]))
    return evaluate.predict_tasks(dataset, measured.spec["backbone"], name, METHODS[name].checked(), tasks)


def as_table(measured: MeasuredTasks) -> pd.DataFrame:
    """One row per task: every measure by name, and the accuracy of every method under its title."""
    return pd.DataFrame({**measured.measures, **measured.accuracy}, index=pd.RangeIndex(len(measured), name="task"))
