"""Class distance in features: coarsity with class means in feature space instead of a taxonomy."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.coarsity import coarsity
from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "feature_distance",
    "Class distance (features)",
    description="Mean squared distance between class means in feature space. It uses all images of the classes, so it "
    "explains more than it predicts.",
    formula=r"\frac{1}{W(W-1)} \sum_{i \neq j} \lVert \mu_i - \mu_j \rVert^2",
    symbols="W: classes of the task; mu_i: mean of the unit-length features of a class",
    direction="easier",
    needs=("feature_distances",),
    paper="after Bennequin et al. 2022",
    order=4,
    cause="looks",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return coarsity(inputs.feature_distances, inputs.positions)
