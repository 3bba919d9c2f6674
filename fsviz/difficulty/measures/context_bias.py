"""Context bias: are queries closer to their context's text than to their class's text (Zhang et al. 2024)?"""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "context_bias",
    "Context bias (image–text)",
    description="Similarity of queries to their context's text minus their class's text.",
    formula=r"\frac{1}{M} \sum_{m=1}^{M} (M_{context}(x_m) - M_{concept}(x_m))",
    symbols="M: queries of the task; x_m: a query; M_context, M_concept: its cosine similarities to the two texts",
    direction="harder",
    needs=("text_margins",),
    paper="Zhang et al. 2024",
    paper_name="M_context − M_concept",
    order=66,
    cause="shift",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return nanmean_rows(inputs.text_margins.reshape(len(inputs.text_margins), -1))
