"""Paired differences between methods, and their ranks by quarter of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.numerics import holm

if TYPE_CHECKING:
    pass
from fsviz.analyses.run_comparison.intervals import difference, task_differences, widest
from fsviz.analyses.run_comparison.method_runs import QUARTERS, MethodRun, by_name, on_common_tasks

VERDICTS = ("significant", "not significant", "not available")


def ranks(lines: Sequence[MethodRun], measure: str = QUARTERS, n_bins: int = 4) -> pd.DataFrame:
    """Rank of every line in each quantile group of a measure: columns method (name), bin, accuracy, ci95, rank.

    Lines must be of the same tasks. Accuracies in percent; empty where the tasks do not have the measure.
    """
    from fsviz.evaluation import method_ranks, varies

    _check_same_tasks(lines)
    values = lines[0].measures.get(measure) if lines else None
    if values is None or np.isfinite(values).sum() < n_bins or not varies(values):
        return pd.DataFrame(columns=["method", "bin", "accuracy", "ci95", "rank"])
    ranked = method_ranks({name: line.accuracy for name, line in by_name(lines).items()}, values, n_bins)
    ranked[["accuracy", "ci95"]] *= 100
    return ranked


def tasks_of_quarter(line: MethodRun, quarter: int, measure: str = QUARTERS, n_bins: int = 4) -> np.ndarray:
    """Tasks of a quantile group of a measure (1 is the lowest), as `ranks` cuts them, hardest first."""
    from fsviz.evaluation import quantile_groups

    here = np.flatnonzero(quantile_groups(line.measures[measure], n_bins, np.isfinite(line.accuracy)) == quarter)
    return here[np.argsort(line.accuracy[here], kind="stable")]


def differences(lines: Sequence[MethodRun], reference: str | None = None, over: str | None = None) -> pd.DataFrame:
    """Every line compared with the reference (by default the most accurate one), on the tasks that all have finished.

    over  unit of the interval and p: "tasks", "images" or "classes" (see evaluation.intervals); by default the widest
          available
    Columns name, reference, n_tasks, over, difference (points of accuracy), ci95, wins, ties, losses, p (over tasks the
    larger of a paired t test and Wilcoxon's signed-rank test), p_holm (corrected for the number of comparisons by
    Holm's method), significant (p_holm below 5%) and verdict (one of VERDICTS).
    """
    _check_same_tasks(lines)
    runs = by_name(on_common_tasks(lines))
    over = over or widest(list(runs.values()))
    if reference is not None and reference not in runs:
        raise BadInput(f"The reference must be one of: {', '.join(runs)}. Got {reference!r}.")
    if reference is None:
        reference = max(runs, key=lambda name: np.nanmean(runs[name].accuracy))
    rows = []
    for name, line in runs.items():
        if name == reference:
            continue
        apart = task_differences(line, runs[reference])
        apart = apart[~np.isnan(apart)]
        estimate = difference(line, runs[reference], over)
        rows.append(
            {
                "name": name,
                "reference": reference,
                "n_tasks": len(apart),
                "over": over,
                "difference": 100 * estimate.mean,
                "ci95": 100 * estimate.ci95,
                "wins": int((apart > 0).sum()),
                "ties": int((apart == 0).sum()),
                "losses": int((apart < 0).sum()),
                "p": _p_over_tasks(line, runs[reference]) if over == "tasks" else estimate.p,
            }
        )
    columns = ["name", "reference", "n_tasks", "over", "difference", "ci95", "wins", "ties", "losses", "p"]
    table = pd.DataFrame(rows, columns=columns)
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    table["significant"] = table["p_holm"] < 0.05
    verdict = np.where(table["significant"], VERDICTS[0], VERDICTS[1])
    table["verdict"] = np.where(table["p_holm"].isna(), VERDICTS[2], verdict)
    return table.sort_values("difference", ascending=False, ignore_index=True)


def _p_over_tasks(line: MethodRun, reference: MethodRun) -> float:
    from fsviz.evaluation import paired_difference

    comparison = paired_difference(line.accuracy, reference.accuracy)
    return float(np.fmax(comparison.p_t, comparison.p_wilcoxon))


def describe_p(over: str) -> str:
    """A sentence about the p of `differences`."""
    test = "the larger p of a paired t test and Wilcoxon's signed-rank test" if over == "tasks" else "that of a t test"
    return f"p is {test} over {over}, Holm-corrected."


def _check_same_tasks(lines: Sequence[MethodRun]) -> None:
    if len({line.digest for line in lines}) > 1:
        raise BadInput(
            f"These runs use {len({line.digest for line in lines})} different testbeds. Choose runs of one testbed."
        )
