"""Context overlap: share of queries whose context is in their class's support (after Zhang et al. 2024)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "context_overlap",
    "Context overlap",
    description="Share of queries whose context appears in their class's support. Low overlap costs accuracy if the "
    "classifier relies on the context.",
    formula=r"\frac{1}{M} \sum_{m=1}^{M} [z_m \in Z_{y_m}]",
    symbols="M: queries of the task; z_m: context of a query; y_m: its class; Z_c: contexts of a class's support "
    "images",
    direction="easier",
    needs=("contexts",),
    paper="after Zhang et al. 2024",
    order=64,
    cause="shift",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return nanmean_rows(inputs.contexts.reshape(len(inputs.contexts), -1))
