"""Graph connectivity: N-th smallest Laplacian eigenvalue of the image graph (Bontonou et al. 2020, definition 8)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "graph_connectivity",
    "Graph connectivity (N-th eigenvalue)",
    description="N-th smallest Laplacian eigenvalue of the nearest-neighbour graph, for N classes: near 0 if the "
    "images form N separate groups.",
    formula=r"\lambda_{N}(D - W), \quad 0 = \lambda_{1} \leq \lambda_{2} \leq \dots",
    symbols="N: classes of the task; W: cosine similarities of every image to its k nearest neighbours, made "
    "symmetric; D: row sums of W on the diagonal; lambda_i: the i-th smallest eigenvalue",
    direction="harder",
    needs=("images",),
    paper="Bontonou et al. 2020",
    paper_name="N-th eigenvalue",
    order=40,
    cause="images",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    """The N-th lowest eigenvalue (T,) of the Laplacian of the graph of the images, N the number of classes."""
    from fsviz.difficulty.task_statistics import task_view

    view = task_view(inputs)
    return (view.eigenvalues.gather(1, view.n_ways.unsqueeze(1) - 1).squeeze(1)).double().numpy()
