"""Runs compared: accuracies next to each other, and whether their differences are significant.

A MethodRun is one method on one backbone of one run, with its numbers per task. Those of the same tasks (same digest)
form a group. Only inside a group are numbers compared, task by task, over the tasks that all of them have finished.
Intervals and p are over tasks, images or classes: by default over the widest unit available (`widest`), so that pages,
commands and reports give one answer. Accuracies in tables are percentages.
"""

from __future__ import annotations

from fsviz.analyses.run_comparison.answers import best_method, describe_p_value, describe_quarters, significance
from fsviz.analyses.run_comparison.by_measure import (
    correlations,
    curves,
    extremes,
    nearest_tasks,
    no_coarsity_effect,
    single_tasks,
    window_of,
)
from fsviz.analyses.run_comparison.comparison import RunComparison, compare
from fsviz.analyses.run_comparison.intervals import widest
from fsviz.analyses.run_comparison.method_runs import (
    CI95,
    MIN_CURVE_TASKS,
    PREVIEW,
    QUARTERS,
    MethodRun,
    by_name,
    group_by_tasks,
    groups,
    measures_of,
    method_runs,
    no_curve_reason,
    on_common_tasks,
    preview_run,
    testbed_title,
)
from fsviz.analyses.run_comparison.mistakes import (
    CLASS_ACCURACIES,
    MISCLASSIFIED,
    Confidence,
    class_table,
    confidence_of,
    misclassified,
    pairs_table,
)
from fsviz.analyses.run_comparison.paired import describe_p, differences, ranks, tasks_of_quarter
from fsviz.analyses.run_comparison.recipe import command, describe
from fsviz.analyses.run_comparison.tables import QUARTILES, result_table, side_by_side, summary_table, with_interval
from fsviz.evaluation.intervals import CI_UNITS

__all__ = [
    "CI95",
    "CI_UNITS",
    "CLASS_ACCURACIES",
    "MIN_CURVE_TASKS",
    "MISCLASSIFIED",
    "PREVIEW",
    "QUARTERS",
    "QUARTILES",
    "Confidence",
    "MethodRun",
    "RunComparison",
    "best_method",
    "by_name",
    "class_table",
    "command",
    "compare",
    "confidence_of",
    "correlations",
    "curves",
    "describe",
    "describe_p",
    "describe_p_value",
    "describe_quarters",
    "differences",
    "extremes",
    "group_by_tasks",
    "groups",
    "measures_of",
    "method_runs",
    "misclassified",
    "nearest_tasks",
    "no_coarsity_effect",
    "no_curve_reason",
    "on_common_tasks",
    "pairs_table",
    "preview_run",
    "ranks",
    "result_table",
    "side_by_side",
    "significance",
    "single_tasks",
    "summary_table",
    "tasks_of_quarter",
    "testbed_title",
    "widest",
    "window_of",
    "with_interval",
]
