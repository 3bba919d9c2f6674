"""Davies-Bouldin score of the clusters that N-means finds without labels (Bontonou et al. 2020, definition 7)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "davies_bouldin",
    "Davies-Bouldin score",
    words="how badly the images fall into as many clusters as there are classes",
    what="The images are clustered without labels into as many groups as the task has classes; for every cluster its "
    "spread and that of the worst neighbour are set against the distance of their centres. Compact clusters far from "
    "each other give a low score; where every cluster is a single image, as with one shot, there is none.",
    formula=r"\frac{1}{N} \sum_{c} \max_{d \neq c} \frac{\delta_c + \delta_d}{\lVert \mu_c - \mu_d \rVert}",
    symbols="N: classes of the task, and clusters; mu_c: the centre of cluster c; delta_c: the mean distance of its "
    "images to the centre",
    direction="harder",
    needs=("images",),
    paper="Bontonou et al. 2020",
    place=30,
    cause="images",
)


def measure(given: Given) -> np.ndarray:
    """Davies-Bouldin score (T,) of the clusters that N-means finds; NaN where no cluster has two images, or none lies
    apart from another."""
    import torch

    from fsviz.difficulty.n_means import means
    from fsviz.difficulty.task_statistics import seen

    view = seen(given)
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
