"""Cluster overlap: Davies–Bouldin index of clusters found without labels (Bontonou et al. 2020, definition 7)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "davies_bouldin",
    "Cluster overlap (Davies–Bouldin)",
    description="Davies–Bouldin index of clusters found without labels. Undefined if every cluster is one image.",
    formula=r"\frac{1}{N} \sum_{c} \max_{d \neq c} \frac{\delta_c + \delta_d}{\lVert \mu_c - \mu_d \rVert}",
    symbols="N: classes of the task, and clusters; mu_c: centre of cluster c; delta_c: mean distance of its images to "
    "the centre",
    direction="harder",
    needs=("images",),
    paper="Bontonou et al. 2020",
    paper_name="Davies-Bouldin score",
    order=30,
    cause="images",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    """Davies-Bouldin score (T,) of the clusters that N-means finds; NaN if no cluster has two images, or none lies
    apart from another."""
    import torch

    from fsviz.difficulty.n_means import means
    from fsviz.difficulty.task_statistics import task_view

    view = task_view(inputs)
    n_ways = view.ways.shape[1]
    shares = means(view.clusters, view.mask, n_ways, view.products.dtype)  # (T, W, V)
    along = torch.bmm(shares, view.products)
    between = torch.bmm(along, shares.transpose(1, 2))  # inner products of the means
    squares = between.diagonal(dim1=1, dim2=2)
    apart = (squares.unsqueeze(2) + squares.unsqueeze(1) - 2 * between).clamp(min=0).sqrt()
    own = view.products.diagonal(dim1=1, dim2=2).unsqueeze(1) - 2 * along + squares.unsqueeze(2)
    scatter = (own.clamp(min=0).sqrt() * shares).sum(2)
    there = (shares > 0).any(2)
    pairs = there.unsqueeze(2) & there.unsqueeze(1) & ~torch.eye(n_ways, dtype=torch.bool, device=apart.device)
    ratio = (scatter.unsqueeze(2) + scatter.unsqueeze(1)) / apart  # infinite, or NaN, where two means are one
    worst = ratio.masked_fill(~pairs, 0.0).amax(2)
    score = (worst * there).sum(1) / there.sum(1)
    defined = (there.sum(1) > 1) & (view.mask.sum(1) > there.sum(1)) & score.isfinite()
    return (torch.where(defined, score, torch.nan)).double().numpy()
