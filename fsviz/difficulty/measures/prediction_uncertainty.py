"""Lack of confidence: how unsure a logistic regression is of the queries (Bontonou et al. 2020, definition 9)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "prediction_uncertainty",
    "Lack of confidence",
    words="how unsure a logistic regression is of the queries",
    what="Minus the logarithm of the largest probability that a logistic regression gives a query, mean over the "
    "queries (LR confidence in the paper). It needs no label of a query, and is zero where the regression is sure of "
    "every one.",
    formula=r"-\frac{1}{NQ} \sum_{i=1}^{NQ} \log \max_c p_{ic}",
    symbols="N: classes of the task; Q: queries per class; p_ic: the probability that the regression gives class c for "
    "query i",
    direction="harder",
    needs=("support", "queries"),
    paper="Bontonou et al. 2020",
    place=50,
    cause="images",
)


def measure(given: Given) -> np.ndarray:
    """-log of the largest probability of a query, mean over the queries of a task (T,), in nats."""
    from fsviz.difficulty.task_statistics import seen

    view = seen(given)
    return (-(view.confidence.log() * view.query_mask).sum(1) / view.query_mask.sum(1)).double().numpy()
