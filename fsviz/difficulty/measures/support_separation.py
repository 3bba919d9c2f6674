"""Support separation: similarity within minus between classes (Bontonou et al. 2020, definition 6)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "support_separation",
    "Support separation (cosine)",
    description="Within-class minus nearest-class cosine similarity of support images. With one shot, the similarity "
    "within a class is 1.",
    formula=r"\frac{1}{N} \sum_{c} \Big( s(c, c) - \max_{d \neq c} s(c, d) \Big)",
    symbols="N: classes of the task; c, d: its classes; s: mean cosine similarity of the support images of two "
    "classes, over pairs of different images",
    direction="easier",
    needs=("support",),
    paper="Bontonou et al. 2020",
    paper_name="similarity",
    order=20,
    cause="images",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    """Similarity within a class less the largest to another class, mean over the classes of a task (T,).

    A class of one image has a similarity of 1 within.
    """
    import torch

    from fsviz.difficulty.task_statistics import task_view
    from fsviz.methods.geometry import one_hot

    view = task_view(inputs)
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
