"""Similarity of support images within a class less that to the nearest other (Bontonou et al. 2020, definition 6)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "support_separation",
    "Similarity",
    words="how much more alike support images of one class are than those of two",
    what="For every class the mean cosine among its support images, less the mean cosine with those of the class that "
    "is nearest to it; then the mean over classes. It is high where every class keeps to itself (with one shot the "
    "similarity within a class counts as 1).",
    formula=r"\frac{1}{N} \sum_{c} \Big( s(c, c) - \max_{d \neq c} s(c, d) \Big)",
    symbols="N: classes of the task; c, d: its classes; s: the mean cosine of support images of two classes, over "
    "pairs of different images",
    direction="easier",
    needs=("support",),
    paper="Bontonou et al. 2020",
    place=20,
    cause="images",
)


def measure(given: Given) -> np.ndarray:
    """Similarity within a class less the largest to another class, mean over the classes of a task (T,).

    A class of one image has a similarity of 1 within.
    """
    import torch

    from fsviz.difficulty.task_statistics import seen
    from fsviz.methods.geometry import one_hot

    view = seen(given)
    n = view.n_support
    cosines = view.cosines[:, :n, :n]
    inside = one_hot(view.support_mask, cosines.dtype)  # (T, W, W S)
    sums = torch.bmm(torch.bmm(inside, cosines), inside.transpose(1, 2))
    counts = inside.sum(2)
    own = (inside * cosines.diagonal(dim1=1, dim2=2).unsqueeze(1)).sum(2)
    pairs = (counts * (counts - 1)).clamp(min=1)
    intra = torch.where(counts > 1, (sums.diagonal(dim1=1, dim2=2) - own) / pairs, 1.0)
    inter = sums / (counts.unsqueeze(2) * counts.unsqueeze(1)).clamp(min=1)
    same = torch.eye(inter.shape[1], dtype=torch.bool, device=inter.device)
    inter = inter.masked_fill(same | ~view.ways.unsqueeze(1), -torch.inf)
    return ((torch.where(view.ways, intra - inter.amax(2), 0.0)).sum(1) / view.n_ways).double().numpy()
