"""Query loss: mean -log probability of the true class (Basu et al. 2023, equation 2)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "query_loss",
    "Query loss",
    description="Mean −log probability of the true class, in nats. Needs query labels.",
    formula=r"-\frac{1}{M} \sum_{m=1}^{M} \log p(y_m \mid x_m, S)",
    symbols="M: queries of the task; x_m: a query; y_m: its class; S: the support; p: predicted probability",
    direction="harder",
    needs=("predictions",),
    paper="Basu et al. 2023",
    paper_name="query loss",
    order=90,
    cause="answers",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return inputs.predictions.loss()
