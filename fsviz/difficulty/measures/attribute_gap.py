"""Attribute shift: difference between support and queries in image attributes (after Basu et al. 2023)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "attribute_gap",
    "Attribute shift",
    description="Difference between support and queries, mean over image attributes: in standard deviations for "
    "numbers, as a share of images for categories.",
    formula=r"\frac{1}{A} \sum_{a=1}^{A} g_a",
    symbols="A: attributes; g_a: the shift in one of them, 0 if support and queries are alike",
    direction="harder",
    needs=("attributes",),
    paper="after Basu et al. 2023",
    order=60,
    cause="shift",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return nanmean_rows(np.stack(list(inputs.attributes.values()), axis=1))
