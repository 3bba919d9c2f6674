"""Nearest neighbours (Cover & Hart 1967), inductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.geometry import blank, cosine, in_a_row, probabilities, squared_distances

TIE_BREAK = 0.01  # of a vote, for the class whose nearest image is nearest of all; less for the others


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    k: int = 1,
    distance: str = "euclidean",
) -> Tensor:
    """Share of the votes of the k nearest support images (all of them where there are fewer).

    Equal votes are settled in favour of the class that holds the nearer image: each class gets a further hundredth
    of a vote times (distance of the nearest image of all / distance of the class's nearest image).
    """
    n_tasks, n_way, n_shot, _ = support.shape
    query = blank(query, query_mask)
    images, there = in_a_row(support, support_mask)
    apart = 1 - cosine(query, images) if distance == "cosine" else squared_distances(query, images).sqrt()
    apart = apart.masked_fill(~there.unsqueeze(-1), torch.inf)
    near = apart.topk(min(k, n_way * n_shot), dim=1, largest=False)
    votes = torch.zeros(n_tasks, n_way, query.shape[1], dtype=query.dtype, device=query.device)
    votes.scatter_add_(1, near.indices // n_shot, near.values.isfinite().to(votes))
    closest = apart.view(n_tasks, n_way, n_shot, -1).amin(2).clamp_(min=1e-6)
    votes += TIE_BREAK * closest.amin(1, keepdim=True) / closest
    return probabilities(votes.log(), support_mask.any(2), query_mask)
