"""Transductive information maximisation, TIM (Boudiaf et al. 2020), transductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cosine_gradient, cosine_scores, cross_entropy_slope
from fsviz.methods.geometry import blank, in_a_row, one_hot, probabilities, prototypes, softmax, unit


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
    ways, labels = support_mask.any(2), one_hot(support_mask)
    images, there = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = unit(torch.cat([images, blank(query, query_mask)], 1))
    share = (query_mask / query_mask.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1)

    def gradient(weights: Tensor) -> Tensor:
        scores = cosine_scores(weights, images, scale)
        probability = softmax(scores, ways)
        guess = probability[..., n_support:]
        marginal = (guess * share).sum(-1, keepdim=True)
        # gradient for the probabilities, up to a constant per query, which softmax's own gradient removes
        pull = marginal_weight * marginal.clamp(min=1e-30).log() - conditional_weight * (guess + 1e-12).log()
        pull = guess * (pull - (guess * pull).sum(1, keepdim=True))
        fit = cross_entropy_slope(probability[..., :n_support], labels, there)
        slope = torch.cat([cross_entropy_weight * fit, pull * share], -1)
        return cosine_gradient(weights, images, scale, scores, slope)

    weights = adam(prototypes(support, support_mask), gradient, steps, lr)
    return probabilities(cosine_scores(weights, images[:, n_support:], scale), ways, query_mask)
