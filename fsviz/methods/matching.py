"""Matching networks (Vinyals et al. 2016) without their trained context encoders, inductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.geometry import blank, cosine, in_a_row, with_ways


def predict(support: Tensor, support_mask: Tensor, query: Tensor, query_mask: Tensor, scale: float = 1.0) -> Tensor:
    """Each class gets the attention paid to its support images: softmax of the cosines with all of them, summed."""
    n_tasks, n_way, n_shot, _ = support.shape
    images, there = in_a_row(support, support_mask)
    likeness = scale * cosine(blank(query, query_mask), images)
    likeness = likeness.masked_fill(~there.unsqueeze(-1), -torch.inf)
    attention = likeness.view(n_tasks, n_way, n_shot, -1).logsumexp(2)  # its logarithm
    return with_ways(attention, support_mask.any(2))
