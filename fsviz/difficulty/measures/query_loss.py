"""Query loss: how surely a classifier is wrong on the queries of a task (Basu et al. 2023, equation 2)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "query_loss",
    "Query loss",
    words="how little a classifier believes in the true class of the queries",
    what="The mean over the queries of a task of minus the logarithm of the probability that a classifier gives the "
    "true class, in nats. It is what the search for hard and easy support sets raises and lowers, and it is known only "
    "when the queries have labels.",
    formula=r"-\frac{1}{M} \sum_{m=1}^{M} \log p(y_m \mid x_m, S)",
    symbols="M: queries of the task; x_m: a query; y_m: its class; S: the support; p: the classifier's probability",
    direction="harder",
    needs=("predictions",),
    paper="Basu et al. 2023",
    place=90,
    cause="answers",
)


def measure(given: Given) -> np.ndarray:
    return given.predictions.loss()
