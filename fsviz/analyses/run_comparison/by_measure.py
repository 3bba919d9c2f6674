"""Accuracy against a measure of the tasks: curves, correlations and single tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fsviz.studies import evaluate

if TYPE_CHECKING:
    pass
from fsviz.analyses.run_comparison.intervals import accuracy_estimate, at_tasks
from fsviz.analyses.run_comparison.method_runs import QUARTERS, MethodRun, by_name

MAX_CORRELATED = 200_000
_ENDS = ((0, "_low"), (1, "_high"))
MAX_POINTS = 400  # of a curve: a screen shows no more
MAX_BANDS = 41  # windows of a curve whose intervals are over images or classes: each is computed by itself


def curves(
    lines: Sequence[MethodRun], measure: str = QUARTERS, window: int | None = None, over: str = "tasks"
) -> dict[str, pd.DataFrame]:
    """Rolling mean of accuracy (percent) against a measure, a line each: columns measure, accuracy, ci95.

    over  what ci95 is over; a curve has fewer points where that is not tasks
    A measure that is the same in all tasks gives no curve.
    """
    from fsviz.evaluation import rolling_accuracy, varies

    by_run = {}
    for name, line in by_name(lines).items():
        values = line.measures.get(measure)
        if values is None or not varies(np.where(line.done, values, np.nan)):
            continue
        curve = rolling_accuracy(line.accuracy, values, window, MAX_POINTS if over == "tasks" else MAX_BANDS)
        if over != "tasks":
            curve["ci95"] = _of_windows(line, values, window, over)
        curve[["accuracy", "ci95"]] *= 100
        by_run[name] = curve
    return by_run


def _of_windows(line: MethodRun, values: np.ndarray, window: int | None, over: str) -> list[float]:
    """Half-width of the interval of every window of a curve, a fraction."""
    from fsviz.evaluation import window_starts
    from fsviz.numerics import sort_order

    finite = np.flatnonzero(np.isfinite(values) & line.done)
    order = finite[sort_order(values[finite])]
    window = int(np.clip(window or max(20, len(order) // 10), 1, len(order)))
    starts = window_starts(len(order), window, MAX_BANDS)
    return [accuracy_estimate(at_tasks(line, np.sort(order[start : start + window])), over).ci95 for start in starts]


def single_tasks(
    line: MethodRun, measure: str = QUARTERS, most: int = 2000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measure, accuracy (percent) and position of single tasks, at most so many, evenly taken: a screen shows no
    more."""
    step = slice(None, None, max(1, -(-len(line.accuracy) // most)))
    return line.measures[measure][step], 100 * line.accuracy[step], np.arange(len(line.accuracy))[step]


def window_of(lines: Sequence[MethodRun], share: float) -> int:
    """Tasks in a rolling window that takes a share (percent) of the shortest line's: at least 20, or all there are."""
    n = min(int(line.done.sum()) for line in lines)
    return min(max(20, round(n * share / 100)), n)


def correlations(lines: Sequence[MethodRun], measure: str = QUARTERS, over: str | None = None) -> pd.DataFrame:
    """The correlation of a measure of the tasks with accuracy, a row per line, with 95% intervals.

    over  "tasks", "images" or "classes"; unless said, classes, or tasks where classes cannot tell
    Columns name, n_tasks, over, pearson, pearson_low, pearson_high, spearman, spearman_low, spearman_high. The ends are
    NaN over images, which is not computed, and over classes where every task holds every class. Of more than
    MOST_CORRELATED tasks every second, third, ... is taken, and n_tasks says how many.
    """
    from fsviz.evaluation import correlation

    unknown = dict.fromkeys((f"{kind}{end}" for kind in evaluate.CORRELATIONS for _, end in _ENDS), np.nan)
    rows = []
    for name, line in by_name(lines).items():
        values = line.measures.get(measure)
        if values is None:
            continue
        stored = line.result.get("correlations", {}).get(measure)
        if stored and over in (None, stored["over"]):
            ends = {f"{kind}{end}": stored[kind]["ci95"][i] for kind in evaluate.CORRELATIONS for i, end in _ENDS}
            both = {kind: stored[kind]["value"] for kind in evaluate.CORRELATIONS}
            rows.append({"name": name, "n_tasks": line.result["n_tasks"], "over": stored["over"], **both, **ends})
            continue
        every_nth = slice(None, None, -(-len(values) // MAX_CORRELATED))
        values, accuracy = values[every_nth], line.accuracy[every_nth]
        class_ids = line.tasks.class_ids[every_nth] if line.tasks is not None and over in (None, "classes") else None
        row: dict[str, Any] = {"name": name, "n_tasks": int((np.isfinite(values) & np.isfinite(accuracy)).sum())}
        for kind in evaluate.CORRELATIONS:
            estimate = correlation(accuracy, values, class_ids, rank=kind == "spearman")
            row |= {
                kind: estimate.value,
                f"{kind}_low": estimate.low,
                f"{kind}_high": estimate.high,
                "over": over or estimate.ci_unit,
            }
        rows.append(row if estimate.ci_unit == row["over"] else row | unknown)
    kinds = [f"{kind}{end}" for kind in evaluate.CORRELATIONS for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["name", "n_tasks", "over", *kinds])


def extremes(line: MethodRun, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The hardest and the easiest tasks of a line, as many of each, among those whose images are available."""
    n_known = len(line.tasks) if line.tasks is not None else 0
    done = np.flatnonzero(np.isfinite(line.accuracy[:n_known]))
    order = done[np.argsort(line.accuracy[done], kind="stable")]
    n = min(n, len(order) // 2)
    return order[:n], order[::-1][:n]


def nearest_tasks(line: MethodRun, measure: str, at: float, n: int = 40) -> np.ndarray:
    """The tasks whose measure is nearest to a value, the hardest first; of those whose images are available."""
    n_known = len(line.tasks) if line.tasks is not None else 0
    values = line.measures[measure][:n_known]
    far = np.abs(values - at)
    finite = np.flatnonzero(np.isfinite(far) & np.isfinite(line.accuracy[:n_known]))
    near = finite[np.argsort(far[finite], kind="stable")[:n]]
    return near[np.argsort(line.accuracy[near], kind="stable")]


def no_coarsity_effect(
    correlations: Mapping[str, Mapping[str, Any]],
    quarters: Mapping[str, Sequence[float]] | None = None,
    how: str = "--distance features",
) -> str:
    """A sentence if coarsity does not predict the accuracy of these tasks; "" if it does, or is not available.

    correlations  name -> rank correlation of coarsity with accuracy: "value" and "ci95"
    quarters      name -> accuracy on the tasks from the finest to the coarsest quarter
    how           where to choose another distance
    Tasks with distant classes should be easier, so coarsity predicts accuracy only if the interval is above 0.
    """
    defined = {
        name: correlation
        for name, correlation in correlations.items()
        if correlation["ci95"][0] is not None and np.isfinite(correlation["ci95"][0])
    }
    without = {name: correlation for name, correlation in defined.items() if correlation["ci95"][0] <= 0}
    if not without or len(without) < len(defined):
        return ""
    name, correlation = next(iter(without.items()))
    low, high = correlation["ci95"]
    cut = (quarters or {}).get(name) or ()
    by_quarter = f"; accuracy by quarter, finest first: {', '.join(f'{q:.1f}' for q in cut)}%" if cut else ""
    return (
        f"Coarsity does not predict accuracy here (rank correlation for {name} {correlation['value']:.2f}, 95% CI "
        f"{low:.2f} to {high:.2f}{by_quarter}). Try distances in feature space ({how})."
    )
