"""Tables of measures and causes."""

from __future__ import annotations

from collections.abc import Iterable

from fsviz.difficulty import measures
from fsviz.studies.causes.spec import MeasuredTasks
from fsviz.tables import Column, Table

EXPLAINED = Table(
    "Share of variation explained by each cause",
    Column("title", "Cause"),
    Column("share", "Unique share", kind="share", interval=("low", "high")),
    Column("alone", "This cause only", kind="share"),
)


def correlation_table(methods: Iterable[str]) -> Table:
    """A row per measure: its correlation with the accuracy of every method."""
    by_method = (Column(method, method, digits=2, kind="number") for method in methods)
    return Table("Correlation with accuracy", Column("title", "Measure"), *by_method)


def task_table(measured: MeasuredTasks) -> Table:
    """A row per task: every measure, and the accuracy of every method."""
    accuracies = (Column(method, method, kind="share") for method in measured.accuracy)
    columns = (Column("task", "Task", kind="count"), *map(measures.column, measured.measures), *accuracies)
    return Table("Measures and accuracies of every task", *columns)
