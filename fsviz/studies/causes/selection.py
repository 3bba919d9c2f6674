"""Tasks selected by their ranks, and how they differ from the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.errors import BadInput, UnknownName
from fsviz.evaluation import VarianceExplained
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset, Predictions
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.studies.causes.explaining import cause_name, harder, varied
from fsviz.studies.causes.spec import MeasuredTasks

BRUSH = Setting(
    "brush",
    "Selected tasks",
    "Ranges that select tasks, such as accuracy~0.2~0.6;coarsity~10~25. Empty: the hardest 10%.",
    "text",
    "",
)
HARDEST = 0.1  # share of tasks that are selected at first
ACCURACY, EXPECTED, RANK = "accuracy", "expected", "rank "


def ranks(measured: MeasuredTasks) -> dict[str, np.ndarray]:
    """Rank (T,) of every task by each measure: 0 the easiest, 1 the hardest."""
    from scipy.stats import rankdata

    by_measure = {}
    for name in varied(measured):
        values = harder(name, measured.measures[name])
        is_finite = np.isfinite(values)
        by_measure[name] = np.full(len(values), np.nan)
        by_measure[name][is_finite] = (rankdata(values[is_finite]) - 0.5) / is_finite.sum()
    return by_measure


def brush_text(ranges: Mapping[str, tuple[float, float]]) -> str:
    """The text that `select_tasks` reads: axis~low~high, separated by semicolons."""
    return ";".join(f"{axis}~{min(ends):.6g}~{max(ends):.6g}" for axis, ends in ranges.items())


def select_tasks(
    measured: MeasuredTasks, method: str, brush: str = "", variance: VarianceExplained | None = None
) -> np.ndarray:
    """Mask (T,) of the tasks that a brush selects; the hardest 10% if it is empty.

    An axis is "accuracy", "expected", a measure, or "rank " and a measure: the rank of a task among these.
    """
    accuracy = measured.accuracy[method]
    if not brush:
        few = max(1, round(HARDEST * np.isfinite(accuracy).sum()))
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
    raise UnknownName("axis of selected tasks", axis, axes)


def extremes(measured: MeasuredTasks, which: np.ndarray) -> pd.DataFrame:
    """Mean rank of the selected tasks by every measure: 0.5 is the middle, 1 the hardest.

    Columns measure, rank, low and high of its 95% CI over classes, and is_significant with that many measures.
    """
    from scipy import stats

    rows = []
    table = ranks(measured)
    for name, values in table.items():
        is_finite = np.isfinite(values)
        n = int((which & is_finite).sum())
        if n < 2 or n == is_finite.sum():
            continue
        mean = float(values[which & is_finite].mean())
        influence = np.where(which, values - mean, 0.0)[is_finite] * (is_finite.sum() / n)
        error, _ = evaluation.of_influence(mean, influence, measured.tasks.class_ids[is_finite])
        half, corrected = (float(stats.t.ppf(1 - 0.025 / m, error.freedom)) * error.error for m in (1, len(table)))
        is_significant = abs(mean - 0.5) > corrected
        row = {"measure": name, "rank": mean, "low": mean - half, "high": mean + half}
        rows.append({**row, "is_significant": is_significant})
    return pd.DataFrame(rows, columns=["measure", "rank", "low", "high", "is_significant"])


def selection_breakdown(
    measured: MeasuredTasks, method: str, variance: VarianceExplained, which: np.ndarray
) -> dict[str, float]:
    """Accuracy (0 to 1) of the selected tasks "below" the mean of all, the part of each cause, and the rest "left".

    The rest is sampling noise and causes that are not measured.
    """
    accuracy = measured.accuracy[method]
    selected = which & np.isfinite(variance.expected)
    if not selected.any():
        raise BadInput("No tasks are selected. Use a wider range.")
    below = float(np.nanmean(accuracy) - accuracy[selected].mean())
    by_cause = {cause: -float(values[selected].mean()) for cause, values in variance.added.items()}
    return {"below": below, **by_cause, "left": below - sum(by_cause.values())}


def describe_selection(measured: MeasuredTasks, method: str, variance: VarianceExplained, which: np.ndarray) -> str:
    """The breakdown in a sentence."""
    breakdown = selection_breakdown(measured, method, variance, which)
    below, unexplained = breakdown.pop("below"), breakdown.pop("left")
    sentence = (
        f"{int(which.sum()):,} selected tasks: {abs(100 * below):.1f} points {'below' if below >= 0 else 'above'} "
        "the mean."
    )
    if variance.total.low <= 0:
        return f"{sentence} No cause explains accuracy significantly here."
    sign = 1 if below >= 0 else -1
    points = {cause: 100 * sign * value for cause, value in sorted(breakdown.items(), key=lambda pair: -pair[1] * sign)}
    significant = {cause: n for cause, n in points.items() if n > 0.5 and variance.lost[cause].sure > 0}
    rest = sum(points.values()) - sum(significant.values())
    if not significant:
        return f"{sentence} None of this is explained significantly."
    shares = [f"{cause_name(cause)} {n:.1f}" for cause, n in significant.items()]
    shares += [f"causes that are not significant {rest:.1f}"] if abs(rest) >= 0.05 else []
    return f"{sentence} Of these, {', '.join(shares)}, unexplained {100 * sign * unexplained:.1f}."


def predictions(dataset: Dataset, measured: MeasuredTasks, method: str, task: int) -> Predictions | None:
    """Predictions for one task by the built-in method with this title; None for other methods."""
    name = next((name for name, entry in METHODS.items() if entry.title == method), None)
    if name is None:
        return None
    tasks = measured.tasks.take(np.array([task]))
    return evaluate.predict_tasks(dataset, measured.spec["backbone"], name, METHODS[name].checked(), tasks)


def as_table(measured: MeasuredTasks) -> pd.DataFrame:
    """A row per task: every measure by name, and the accuracy of every method by its title."""
    return pd.DataFrame({**measured.measures, **measured.accuracy}, index=pd.RangeIndex(len(measured), name="task"))


def class_names(dataset: Dataset, measured: MeasuredTasks) -> list[list[str]]:
    """Short names of the classes of every task."""
    names = np.array(dataset.short_names(), dtype=object)
    return [names[row[row != PAD]].tolist() for row in measured.tasks.class_ids]
