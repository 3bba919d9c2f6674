"""Predictions of a learner for tasks, and their accuracies."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsviz import evaluation, training
from fsviz.records import Predictions, Tasks
from fsviz.studies.training.inputs import images_of_run
from fsviz.studies.training.stages import TrainingSpec
from fsviz.training import TITLES


def predict(spec: TrainingSpec, learner: Any, tasks: Tasks) -> Predictions:
    images = images_of_run(spec)
    rows = [images.rows_of(ids) for ids in (tasks.support, tasks.query)]
    module = training.get(spec["method"]).load()
    return predictions_from(module.scores(learner, images.inputs, *rows, spec), tasks, spec["method"])


def predictions_from(scores: Any, tasks: Tasks, which: str) -> Predictions:
    import torch

    ways = torch.ones(tasks.class_ids.shape, dtype=torch.bool)
    there = np.ones(tasks.query.shape, dtype=bool)
    cause = "Lower the learning rate."
    return evaluation.predictions_from(scores.cpu().contiguous(), ways, there, TITLES[which], lambda task: cause)


def accuracies(predictions: Predictions) -> np.ndarray:
    return evaluation.task_accuracy(predictions)
