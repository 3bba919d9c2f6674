"""Prediction uncertainty of a logistic regression on the queries (Bontonou et al. 2020, definition 9)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "prediction_uncertainty",
    "Prediction uncertainty",
    description="Mean −log of the top class probability on the queries, in nats. Needs no query labels.",
    formula=r"-\frac{1}{NQ} \sum_{i=1}^{NQ} \log \max_c p_{ic}",
    symbols="N: classes of the task; Q: queries per class; p_ic: predicted probability of class c for query i",
    direction="harder",
    needs=("support", "queries"),
    paper="Bontonou et al. 2020",
    paper_name="LR confidence",
    order=50,
    cause="images",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    """-log of the largest probability of a query, mean over the queries of a task (T,), in nats."""
    from fsviz.difficulty.task_statistics import task_view

    view = task_view(inputs)
    return (-(view.confidence.log() * view.query_mask).sum(1) / view.query_mask.sum(1)).double().numpy()
