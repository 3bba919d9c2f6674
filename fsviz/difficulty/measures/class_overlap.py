"""Class overlap: label entropy within communities of images, over class pairs (Bontonou et al. 2020, figure 3)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "class_overlap",
    "Class overlap (Louvain)",
    description="Label entropy within Louvain communities of images, summed over class pairs, in bits. It uses all "
    "images of the classes, so it explains more than it predicts.",
    formula=r"\sum_{a < b} H(Y_{ab} \mid C_{ab})",
    symbols="a, b: classes of the task; C_ab: communities of their images; Y_ab: class of an image; H: entropy in bits",
    direction="harder",
    needs=("overlaps",),
    paper="Bontonou et al. 2020",
    paper_name="confusion",
    order=5,
    cause="looks",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    from fsviz.difficulty.class_confusion import task_confusion

    assert inputs.overlaps is not None and inputs.positions is not None
    return task_confusion(inputs.overlaps, inputs.positions)
