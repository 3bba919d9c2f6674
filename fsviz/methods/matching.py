"""Matching networks (Vinyals et al. 2016) without their trained context encoders, inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, scale

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "matching",
    "MatchingNet",
    "Vinyals et al. 2016",
    11,
    "inductive",
    "Lets every support image vote for its class, the more the smaller its angle to the query.",
    (scale(1.0),),
    pairwise=True,
)


def predict(support: Tensor, support_mask: Tensor, query: Tensor, query_mask: Tensor, scale: float = 1.0) -> Tensor:
    """Each class gets the attention paid to its support images: softmax of the cosines with all of them, summed."""
    import torch

    from fsviz.methods.geometry import blank, cosine, in_a_row, with_ways

    n_tasks, n_way, n_shot, _ = support.shape
    images, there = in_a_row(support, support_mask)
    likeness = scale * cosine(blank(query, query_mask), images)
    likeness = likeness.masked_fill(~there.unsqueeze(-1), -torch.inf)
    attention = likeness.view(n_tasks, n_way, n_shot, -1).logsumexp(2)  # its logarithm
    return with_ways(attention, support_mask.any(2))
