"""Finetune / Baseline (Chen et al. 2019), inductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cosine_gradient, cosine_scores, cross_entropy_slope, with_bias
from fsviz.methods.geometry import blank, in_a_row, one_hot, probabilities, prototypes, softmax, unit


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    head: str = "cosine",
    steps: int = 10,
    lr: float = 1e-3,
    scale: float = 1.0,
) -> Tensor:
    """Trains a head on the support by Adam, backbone frozen, and applies it to the queries.

    head  "cosine": scores are cosines with one vector per class, starting at the prototypes (Bennequin et al. 2022);
          "linear": a linear layer with bias, starting at zero.
    """
    ways, labels = support_mask.any(2), one_hot(support_mask)
    images, there = in_a_row(support, support_mask)
    query = blank(query, query_mask)
    if head == "linear":
        images, query = with_bias(images), with_bias(query)

        def gradient(weights: Tensor) -> Tensor:
            scores = scale * torch.bmm(weights, images.transpose(1, 2))
            return scale * torch.bmm(cross_entropy_slope(softmax(scores, ways), labels, there), images)

        start = images.new_zeros(len(images), support.shape[1], images.shape[2])
        weights = adam(start, gradient, steps, lr)
        return probabilities(scale * torch.bmm(weights, query.transpose(1, 2)), ways, query_mask)

    images = unit(images)

    def cosine_head_gradient(weights: Tensor) -> Tensor:
        scores = cosine_scores(weights, images, scale)
        slope = cross_entropy_slope(softmax(scores, ways), labels, there)
        return cosine_gradient(weights, images, scale, scores, slope)

    weights = adam(prototypes(support, support_mask), cosine_head_gradient, steps, lr)
    return probabilities(cosine_scores(weights, unit(query), scale), ways, query_mask)
