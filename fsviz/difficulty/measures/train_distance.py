"""Distance from training classes: divergence of class distributions (Arnold & Sha 2021, table 2)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "train_distance",
    "Distance from training classes",
    description="Divergence between class distributions around the training classes and around the task. It matters "
    "less if the backbone was trained on other classes.",
    formula=r"\sum_k (p_k - q_k) \log \frac{p_k}{q_k}, \quad p_k \propto e^{-\lVert x_k - \mu \rVert^2}, \quad "
    r"q_k \propto e^{-\lVert x_k - \nu \rVert^2}",
    symbols="x_k: unit-length mean feature of a class; mu: centre of the training classes; nu: centre of the task's "
    "classes; p_k, q_k: the two distributions over the classes of both",
    direction="harder",
    needs=("train_divergence",),
    paper="Arnold & Sha 2021",
    paper_name="divergence",
    order=70,
    cause="transfer",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    return inputs.train_divergence
