"""Test tasks answered by the best network, and the learning rate of Finetune."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from fsviz.errors import NotFinite
from fsviz.records import Predictions, Tasks
from fsviz.studies.training.epochs import best_learner
from fsviz.studies.training.inputs import cache_stamp, images_of_run, tasks_of_run
from fsviz.studies.training.scoring import accuracies, predict, predictions_from
from fsviz.studies.training.stages import TrainingSpec
from fsviz.training import FINETUNE

RATE_TASKS = 20  # validation tasks that the rate of Finetune is chosen on


def rate_accuracies(spec: TrainingSpec) -> tuple[float, ...]:
    return _rates_at(spec["folder"], cache_stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=1)
def _rates_at(folder: str, stamp: int, key: str) -> tuple[float, ...]:
    """The accuracy of every rate of Finetune on validation tasks; 0 for one that leaves the range of numbers."""
    from fsviz.training import finetuning

    spec = json.loads(key)
    tasks = tasks_of_run(spec, "val").take(slice(0, RATE_TASKS))
    by_rate = []
    for rate in finetuning.RATES:
        try:
            by_rate.append(float(accuracies(answers(spec, FINETUNE, tasks, rate)).mean()))
        except NotFinite:
            by_rate.append(0.0)
    return tuple(by_rate)


def finetune_rate(spec: TrainingSpec) -> float:
    """The rate that was asked for, or the best on validation tasks (the smaller one of equals)."""
    from fsviz.training import finetuning

    if spec["finetune_lr"]:
        return float(spec["finetune_lr"])
    return float(finetuning.RATES[int(np.argmax(rate_accuracies(spec)))])


def answers(spec: TrainingSpec, which: str, tasks: Tasks, rate: float = 0.0) -> Predictions:
    """Predictions of the best network for the queries, by the method itself or by Finetune."""
    from fsviz.training import finetuning

    learner = best_learner(spec)
    if which != FINETUNE:
        return predict(spec, learner, tasks)
    images = images_of_run(spec)
    support, query = (images.rows_of(ids) for ids in (tasks.support, tasks.query))
    scores = finetuning.scores(learner, images.inputs, support, query, spec["finetune_steps"], rate)
    return predictions_from(scores, tasks, which)
