"""Pull of the context: whether queries are nearer to the word for their background than to that for their class."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "context_bias",
    "Pull of the context",
    words="how much nearer the queries are to the words for their contexts than to those for their classes",
    what="An image-text model compares every query with the word for its context and with the word for its class. "
    "Where the first cosine is the larger one, the background says more than the thing.",
    formula=r"\frac{1}{M} \sum_{m=1}^{M} (M_{context}(x_m) - M_{concept}(x_m))",
    symbols="M: queries of the task; x_m: a query; M_context, M_concept: its cosines with the two texts",
    direction="harder",
    needs=("words",),
    paper="Zhang et al. 2024",
    place=66,
    cause="shift",
)


def measure(given: Given) -> np.ndarray:
    return nanmean_rows(given.words.reshape(len(given.words), -1))
