"""The profile of a task: every measure, and how the task compares with the others of its testbed.

    task id -> the task -> predictions of methods -> measures, and their percentiles in the testbed
                        -> classes: distances, overlap, contexts; attributes; hard and easy support sets

`open_task` returns what is fast to compute. `values_among_tasks` measures the other tasks of the testbed, for
percentiles: "harder than 83% of its tasks". Of a large testbed it takes some, evenly spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fsviz.analyses.task_profile.among_tasks import (
    POSITION,
    GapPercentile,
    Percentile,
    ValuesAmongTasks,
    accuracy_percentile,
    gaps,
    neighbours,
    orders,
    percentile,
    percentiles,
    values_among_tasks,
    with_values_among_tasks,
)
from fsviz.analyses.task_profile.contents import (
    OVERLAP,
    ClassPairs,
    class_pairs,
    contexts,
    predicted_pairs,
    support_sets_of,
    tree,
)
from fsviz.analyses.task_profile.headline import compare_headline, headline
from fsviz.analyses.task_profile.profile import (
    ACCURACY,
    MAX_MEASURED,
    MethodResult,
    TaskProfile,
    command,
    digest,
    first_task,
    is_of_testbed,
    newest_of_each,
    open_task,
    results_of_run,
    task_at,
)
from fsviz.analyses.task_profile.tables import ANSWERS, CLASSES, CONTEXTS, MEASURE_VALUES, gap_rows, value_table
from fsviz.records import PAD
from fsviz.studies import support_sets
from fsviz.studies.support_sets import SupportSets

__all__ = [
    "ACCURACY",
    "ANSWERS",
    "CLASSES",
    "CONTEXTS",
    "MAX_MEASURED",
    "MEASURE_VALUES",
    "OVERLAP",
    "POSITION",
    "ClassPairs",
    "GapPercentile",
    "MethodResult",
    "Percentile",
    "TaskProfile",
    "ValuesAmongTasks",
    "accuracy_percentile",
    "class_pairs",
    "command",
    "compare_headline",
    "contexts",
    "digest",
    "first_task",
    "gap_rows",
    "gaps",
    "headline",
    "is_of_testbed",
    "neighbours",
    "newest_of_each",
    "open_task",
    "orders",
    "percentile",
    "percentiles",
    "predicted_pairs",
    "profile_dict",
    "results_of_run",
    "support_sets_of",
    "task_at",
    "tree",
    "value_table",
    "values_among_tasks",
    "with_values_among_tasks",
]

# As numbers --------------------------------------------------------------------------------------------------------


def profile_dict(profile: TaskProfile, among: ValuesAmongTasks, sets: SupportSets | None = None) -> dict[str, Any]:
    """A profile as numbers for JSON; values that are not available are null."""
    percentile_of = percentiles(profile, among)
    values: dict[str, Any] = {
        "task": str(profile.task_id),
        "testbed": profile.testbed.title,
        "dataset": profile.dataset.name,
        "position": profile.position,
        "n_tasks": among.n_tasks,
        "n_measured": len(among.positions),
        "backbone": profile.backbone or None,
        "classes": profile.names,
    }
    for side in ("support", "query"):
        images = getattr(profile.tasks, side)[0]
        values[side] = [[int(i) for i in row if i != PAD] for row in images] if profile.has_images else None
    values["measures"] = [
        {
            "measure": item.measure.name,
            "title": item.measure.title,
            "value": _finite(item.value),
            "higher_is": item.measure.direction,
            "percentile": _percent(percentile_of[item.measure.name].lower)
            if item.measure.name in percentile_of
            else None,
            "harder_than": _percent(percentile_of[item.measure.name].harder)
            if item.measure.name in percentile_of
            else None,
            "why_not": item.why_not or None,
        }
        for item in profile.values
    ]
    values["methods"] = [
        {
            "method": result.label,
            "backbone": result.backbone,
            "accuracy": 100 * result.accuracy,
            "mean": _percent(result.mean[0]),
            "ci95": _percent(result.mean[1]),
            "n_tasks": int(np.isfinite(result.testbed_accuracy).sum()),
            "harder_than": _percent(accuracy_percentile(profile, result).harder),
            "run": result.source or None,
        }
        for result in profile.results
    ]
    values["pairs"] = {pairs.name: pairs.values.tolist() for pairs in class_pairs(profile)}
    values["gaps"] = {g.name: _finite(g.gap) for g in gaps(profile)}
    values["support_sets"] = {w: 100 * float(sets.accuracy(w)[0]) for w in support_sets.SETS} if sets else None
    return values


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _percent(share: float) -> float | None:
    return 100 * float(share) if np.isfinite(share) else None
