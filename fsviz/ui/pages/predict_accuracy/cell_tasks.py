"""Tasks of a selected point, hardest first."""

from __future__ import annotations

import numpy as np

from fsviz.records import Dataset
from fsviz.studies import prediction as study
from fsviz.studies.prediction.measured import outcome_name
from fsviz.ui.parts import drilldown


def show(dataset: Dataset, result: study.PredictionResult, value: str, name: str) -> None:
    """Show tasks of a cell with their outcomes; `name` is the link key of the selected task."""
    tasks, outcome = study.tasks_of_cell(result, value)
    outcome_title = outcome_name(result.spec)
    order = np.argsort(outcome, kind="stable")
    notes = {int(t): f"{100 * outcome[t]:.0f}% {outcome_title}" for t in order}
    drilldown.tasks(dataset, tasks, order, notes, f"{result.cache_key} {value}", name)
