"""Tables of one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fsviz.analyses.task_profile.among_tasks import GapPercentile
from fsviz.tables import Column, Table

MEASURE_VALUES = Table(
    "Measures",
    Column("title", "Measure"),
    Column("value", "Value", kind="number"),
    Column("percentile", "Percentile", digits=0, kind="number", help="Share of tasks with a lower value."),
    Column("harder_than", "Harder than", "% of tasks", 0, kind="number"),
    Column("higher_is", "Higher is"),
    Column("uses", "Uses"),
    Column("why_not", "Not available because"),
)
ANSWERS = Table(
    "Accuracy of methods",
    Column("method", "Method"),
    Column("backbone", "Backbone"),
    Column("accuracy", "Accuracy", kind="percent"),
    Column("mean", "Testbed mean", kind="percent", interval="ci95"),
    Column("n_tasks", "Tasks", kind="count"),
    Column("harder_than", "Harder than", "% of tasks", 0, kind="number"),
    Column("run", "Run"),
)
CONTEXTS = Table(
    "Contexts of support and queries",
    Column("class", "Class", kind="class"),
    Column("support", "Support contexts"),
    Column("query", "Query contexts"),
    Column("shared", "Shared", "queries", kind="count"),
    Column("n", "With a context", "queries", kind="count"),
)
CLASSES = Table(
    "Classes of the task",
    Column("class", "Class", kind="class"),
    Column("support", "Support images"),
    Column("query", "Queries"),
)


def value_table(titles: Sequence[str]) -> Table:
    """The table of measures with a column per task: value_0, percentile_0, value_1, ..."""
    first, *rest = MEASURE_VALUES.columns
    columns = [first]
    for which, title in enumerate(titles):
        for column in MEASURE_VALUES.only("value", "percentile").columns:
            name = f"{column.title}, {title.lower()}" if len(titles) > 1 else column.title
            columns.append(replace(column, name=f"{column.name}_{which}", title=name))
    return Table(MEASURE_VALUES.title, *columns, *(c for c in rest if c.name not in ("value", "percentile")))


def gap_rows(gaps: Sequence[GapPercentile]) -> list[dict[str, Any]]:
    """The rows of custom_task.GAPS."""
    return [
        {
            "attribute": gap.name.replace("_", " "),
            "gap": gap.gap,
            "larger_than": 100 * gap.percentile.harder,
            "unit": "standard deviations" if gap.in_deviations else "share of images",
        }
        for gap in gaps
    ]
