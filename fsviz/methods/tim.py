"""Transductive information maximisation, TIM (Boudiaf et al. 2020), transductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cosine_head, cross_entropy
from fsviz.methods.geometry import blank, cosine, equal_shares, in_a_row, prototypes, with_ways


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    steps: int = 100,
    lr: float = 1e-3,
    scale: float = 10.0,
    cross_entropy_weight: float = 1.0,
    marginal_weight: float = 1.0,
    conditional_weight: float = 0.1,
) -> Tensor:
    """Trains a cosine head, from the prototypes, by Adam on

    a CE(support) - b H(mean prediction of the queries) + c mean H(prediction of a query),

    with the weights a, b, c in the order of the arguments and H the entropy: fit the support, use all classes,
    and be sure of every query.
    """
    ways = support_mask.any(2)
    images, _ = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = torch.cat([images, blank(query, query_mask)], 1)
    fit = cross_entropy(support_mask, images.dtype)
    share = equal_shares(query_mask, images.dtype)

    def slope(probability: Tensor) -> Tensor:
        guess = probability[..., n_support:]
        marginal = (guess * share).sum(-1, keepdim=True)
        # gradient for the probabilities, up to a constant per query, which softmax's own gradient removes
        pull = (guess + 1e-12).log_().mul_(-conditional_weight).add_(marginal_weight * marginal.clamp(min=1e-30).log())
        pull = pull.sub_((guess * pull).sum(1, keepdim=True)).mul_(guess).mul_(share)
        return torch.cat([cross_entropy_weight * fit(probability[..., :n_support]), pull], -1)

    weights = adam(prototypes(support, support_mask), cosine_head(images, scale, ways, slope), steps, lr)
    return with_ways(scale * cosine(images[:, n_support:], weights), ways)
