"""Intervals over tasks, images or classes: of an accuracy, and of a paired difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fsviz.evaluation.intervals import CI_UNITS

if TYPE_CHECKING:
    from fsviz.evaluation import Estimate
from fsviz.analyses.run_comparison.method_runs import CI95, MethodRun


def widest(lines: Sequence[MethodRun]) -> str:
    """The default of what intervals are over: the widest of CI_UNITS that is known of all method runs."""
    for over in reversed(CI_UNITS):
        if lines and all(np.isfinite(_half_width(line, over)) for line in lines):
            return over
    return next(iter(CI_UNITS))


def _half_width(line: MethodRun, over: str) -> float:
    """Half-width of the interval of a line's accuracy, in points."""
    stored = cast(Any, line.result).get(CI95[over])
    return float(stored) if stored is not None else 100 * difference(line, None, over).ci95


def at_tasks(line: MethodRun, tasks: np.ndarray) -> MethodRun:
    """A line of some of its tasks, in this order of positions."""
    selected = replace(line, accuracy=line.accuracy[tasks])
    if line.right is None or line.tasks is None:
        return selected
    positions = tasks[tasks < len(line.right)]
    return replace(selected, right=line.right[positions], tasks=line.tasks.take(positions))


def difference(line: MethodRun, reference: MethodRun | None, over: str) -> Estimate:
    """The line's mean accuracy, or its mean difference to the reference, with its error; unknown where queries are."""
    if reference is None:
        return accuracy_estimate(line, over)
    right, tasks = line.right, line.tasks
    if right is not None and tasks is not None and reference.right is not None:
        n = min(len(right), len(reference.right))
        right, tasks = right[:n] - reference.right[:n], tasks.take(slice(0, n))
    else:
        right = None
    return accuracy_estimate(replace(line, accuracy=task_differences(line, reference), right=right, tasks=tasks), over)


def task_differences(line: MethodRun, reference: MethodRun) -> np.ndarray:
    """Difference of accuracy of every task (T,), NaN where one has not finished it."""
    return np.round(line.accuracy - reference.accuracy, 9)  # 0.6 - 0.6 computed two ways is a tie


def accuracy_estimate(line: MethodRun, over: str) -> Estimate:
    """The mean of a line's accuracies with its error; unknown over images and classes where queries are."""
    from fsviz.evaluation import Estimate, estimate

    right = line.right
    if over != "tasks" and (right is None or line.tasks is None or not np.isfinite(right).any()):
        return Estimate(float(np.nanmean(line.accuracy)), float("nan"), float("nan"))
    return estimate(line.accuracy, over, right, line.tasks)
