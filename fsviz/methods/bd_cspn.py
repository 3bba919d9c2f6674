"""BD-CSPN, prototype rectification (Liu et al. 2020), transductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.geometry import blank, cosine, in_a_row, mean_image, probabilities, prototypes, unit


def predict(support: Tensor, support_mask: Tensor, query: Tensor, query_mask: Tensor, scale: float = 1.0) -> Tensor:
    """Softmax of the cosines with prototypes that were moved towards the queries that look like them."""
    query = blank(query, query_mask)
    scores = scale * cosine(query, rectified_prototypes(support, support_mask, query, query_mask))
    return probabilities(scores, support_mask.any(2), query_mask)


def rectified_prototypes(support: Tensor, support_mask: Tensor, query: Tensor, query_mask: Tensor) -> Tensor:
    """Prototypes (T, W, D) from support and pseudo-labelled queries; padded queries must hold zeros.

    The queries are shifted so that their mean meets that of the support; each takes the label of the most similar
    prototype; every image then counts in its class by exp(cosine with the prototype).
    """
    n_tasks, n_way, n_shot, _ = support.shape
    images, there = in_a_row(support, support_mask)
    centres = unit(prototypes(support, support_mask))
    shift = mean_image(images, there) - mean_image(query, query_mask)
    moved = query + shift

    own = (unit(images).view_as(support) * centres.unsqueeze(2)).sum(-1).exp()
    own = own * support_mask
    likeness = cosine(moved, centres)
    if not bool(support_mask.any(2).all()):
        likeness = likeness.masked_fill(~support_mask.any(2).unsqueeze(-1), -torch.inf)
    best = likeness.max(1, keepdim=True)
    lent = torch.zeros_like(likeness).scatter_(1, best.indices, best.values.exp() * query_mask.unsqueeze(1))

    total = own.sum(2) + lent.sum(2)
    kept = torch.bmm(own.view(n_tasks * n_way, 1, n_shot), images.view(n_tasks * n_way, n_shot, -1))
    gathered = torch.baddbmm(kept.view_as(centres), lent, moved)
    return gathered / total.clamp(min=1e-12).unsqueeze(-1)
