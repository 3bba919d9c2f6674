"""Context overlap: the share of queries in a context of their own class's support (after Zhang et al. 2024)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "context_overlap",
    "Context overlap",
    words="how many queries were taken in a context of their class's support",
    what="The share of queries whose context, the background, is among those of the support images of their class. "
    "Where it is low, a classifier that has learned the background is lost.",
    formula=r"\frac{1}{M} \sum_{m=1}^{M} [z_m \in Z_{y_m}]",
    symbols="M: queries of the task; z_m: the context of a query; y_m: its class; Z_c: the contexts of the support "
    "images of a class",
    direction="easier",
    needs=("contexts",),
    paper="after Zhang et al. 2024",
    place=64,
    cause="shift",
)


def measure(given: Given) -> np.ndarray:
    return nanmean_rows(given.contexts.reshape(len(given.contexts), -1))
