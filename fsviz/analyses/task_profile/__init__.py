"""Why is this one task hard? Everything that fsviz measures, for one task of a testbed.

    name of a task -> the task -> answers of methods -> measures, and where they stand among the testbed's tasks
                               -> classes: distances, confusions, contexts; attributes; hard and easy support sets

`open_task` is what can be known in a moment. `spread` measures the other tasks of the testbed, so that a number can be
held against them: "harder than 83% of its tasks". Of a large testbed it takes some, evenly spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fsviz.analyses.task_profile.among_tasks import (
    POSITION,
    AttributeGap,
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
    ClassPairs,
    class_pairs,
    contexts,
    predicted_pairs,
    support_sets_of,
    tree,
)
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
    "POSITION",
    "AttributeGap",
    "ClassPairs",
    "MethodResult",
    "Percentile",
    "TaskProfile",
    "ValuesAmongTasks",
    "accuracy_percentile",
    "class_pairs",
    "command",
    "contexts",
    "digest",
    "first_task",
    "gap_rows",
    "gaps",
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

# In numbers --------------------------------------------------------------------------------------------------------


def profile_dict(passport: TaskProfile, among: ValuesAmongTasks, sets: SupportSets | None = None) -> dict[str, Any]:
    """A passport as a command gives it; what is not known is null."""
    stands = percentiles(passport, among)
    told: dict[str, Any] = {
        "task": str(passport.task_id),
        "testbed": passport.found.title,
        "dataset": passport.dataset.name,
        "position": passport.position,
        "n_tasks": among.n_tasks,
        "n_measured": len(among.positions),
        "backbone": passport.backbone or None,
        "classes": passport.names,
    }
    for side in ("support", "query"):
        images = getattr(passport.tasks, side)[0]
        told[side] = [[int(i) for i in row if i != PAD] for row in images] if passport.has_images else None
    told["measures"] = [
        {
            "measure": one.measure.name,
            "title": one.measure.title,
            "value": _known(one.value),
            "higher_is": one.measure.direction,
            "percentile": _percent(stands[one.measure.name].lower) if one.measure.name in stands else None,
            "harder_than": _percent(stands[one.measure.name].harder) if one.measure.name in stands else None,
            "why_not": one.why_not or None,
        }
        for one in passport.values
    ]
    told["methods"] = [
        {
            "method": one.label,
            "backbone": one.backbone,
            "accuracy": 100 * one.accuracy,
            "mean": _percent(one.mean[0]),
            "ci95": _percent(one.mean[1]),
            "n_tasks": int(np.isfinite(one.others).sum()),
            "harder_than": _percent(accuracy_percentile(passport, one).harder),
            "run": one.source or None,
        }
        for one in passport.answers
    ]
    told["pairs"] = {pairs.name: pairs.values.tolist() for pairs in class_pairs(passport)}
    told["gaps"] = {g.name: _known(g.gap) for g in gaps(passport)}
    told["support_sets"] = {w: 100 * float(sets.accuracy(w)[0]) for w in support_sets.SETS} if sets else None
    return told


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _percent(share: float) -> float | None:
    return 100 * float(share) if np.isfinite(share) else None
