"""How hard is each task? Every measure that a dataset allows, for any tasks of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsviz import evaluation, features
from fsviz.difficulty.measures import MEASURES, Given, get
from fsviz.errors import FsvizError, Missing
from fsviz.records import PAD, Dataset, Features, Tasks
from fsviz.studies import draw, evaluate, prediction
from fsviz.studies.threads import half_the_cores


def measure_tasks(
    tasks: Tasks, dataset: Dataset, backbone: str, wanted: Sequence[str] | None = None, method: str = "protonet"
) -> pd.DataFrame:
    """One row per task, one column per measure; a measure that was not asked for by name is left out where it cannot
    be known.

    method  whose answers those of "predictions" are about
    """
    table = features.load(dataset, backbone)
    evaluation.check_tasks(table, tasks)
    found = {}
    for name in [get(name).name for name in wanted] if wanted else MEASURES:
        try:
            found[name] = _measured(name, tasks, dataset, table, method)
        except FsvizError:
            if wanted:
                raise
    return pd.DataFrame(found, index=pd.RangeIndex(len(tasks), name="task"))


def _measured(name: str, tasks: Tasks, dataset: Dataset, table: Features, method: str) -> np.ndarray:
    from fsviz.difficulty.predictors import views

    measure = MEASURES[name]
    if "distances" in measure.needs:
        known = draw.with_coarsity(tasks, dataset).measures
        if name not in known:
            raise Missing(f"{measure.title} needs a taxonomy of {dataset.title}, which has none for these classes.")
        return np.asarray(known[name])
    if "confusions" in measure.needs:
        used = tasks.class_ids[tasks.class_ids != PAD]
        split = next(s for s in (*dataset.splits, "all") if np.isin(used, dataset.split_class_ids(s)).all())
        spec = prediction.checked_spec({"dataset": dataset.name, "backbone": table.backbone, "split": split})
        known = prediction.with_confusion(tasks, dataset, spec).measures
        if name not in known:
            raise Missing(f"{measure.title} takes longer than a moment here: the page Confusion does it as a run.")
        return np.asarray(known[name])
    if "predictions" in measure.needs:
        return measure(Given(predictions=evaluate.look(dataset, table.backbone, method, {}, tasks)))
    values = np.full(len(tasks), np.nan)
    with half_the_cores():
        for where, view in views(table, tasks, "supervised" if measure.needs == ("support",) else "semi"):
            values[where] = measure(view)
    return values
