"""Class confusion: how much a backbone mixes up the pairs of a task's classes (Bontonou et al. 2020, figure 3)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "class_overlap",
    "Class confusion",
    words="how much the classes of a task are mixed up by the backbone",
    what="For every pair of the task's classes, the confusion in bits of all their images: those that look alike form "
    "communities, and the confusion is what is left unknown of the class once the community is known. The sum over "
    "pairs is high where the backbone cannot tell the classes apart; it takes labels of all images of the classes, so "
    "it explains more than it predicts.",
    formula=r"\sum_{a < b} H(Y_{ab} \mid C_{ab})",
    symbols="a, b: classes of the task; C_ab: the communities of their images; Y_ab: which of the two classes an image "
    "is of; H: entropy in bits",
    direction="harder",
    needs=("confusions",),
    paper="Bontonou et al. 2020",
    place=5,
    cause="looks",
)


def measure(given: Given) -> np.ndarray:
    from fsviz.difficulty.class_confusion import task_confusion

    assert given.confusions is not None and given.positions is not None
    return task_confusion(given.confusions, given.positions)
