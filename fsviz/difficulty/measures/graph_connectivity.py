"""N-th eigenvalue: how far a graph of the images is from falling into N parts (Bontonou et al. 2020, definition 8)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "graph_connectivity",
    "N-th eigenvalue",
    words="how far the graph of the images is from falling into as many parts as there are classes",
    what="Every image is joined to those nearest to it, and a graph that falls into N parts has N eigenvalues of its "
    "Laplacian that are zero. The N-th lowest is therefore near zero where N classes lie apart, and grows with the "
    "edges that join them.",
    formula=r"\lambda_{N}(D - W), \quad 0 = \lambda_{1} \leq \lambda_{2} \leq \dots",
    symbols="N: classes of the task; W: cosines of every image with its k nearest ones, made symmetric; D: its row "
    "sums on the diagonal; lambda_i: the i-th lowest eigenvalue",
    direction="harder",
    needs=("images",),
    paper="Bontonou et al. 2020",
    place=40,
    cause="images",
)


def measure(given: Given) -> np.ndarray:
    """The N-th lowest eigenvalue (T,) of the Laplacian of the graph of the images, N the number of classes."""
    from fsviz.difficulty.task_statistics import seen

    view = seen(given)
    return (view.eigenvalues.gather(1, view.n_ways.unsqueeze(1) - 1).squeeze(1)).double().numpy()
