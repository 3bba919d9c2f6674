"""Baseline++ (Chen et al. 2019), inductive."""

from __future__ import annotations

from torch import Tensor

from fsviz.methods.descent import cosine_gradient, cosine_scores, cross_entropy_slope, momentum
from fsviz.methods.geometry import blank, in_a_row, one_hot, probabilities, prototypes, softmax, unit


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    steps: int = 100,
    lr: float = 0.01,
    weight_decay: float = 1e-3,
    scale: float = 10.0,
) -> Tensor:
    """Trains a cosine head on the support by gradient descent with momentum (0.9, dampened) and weight decay.

    The paper starts from random weights and takes mini-batches; here every class starts at the mean direction of its
    support and each step sees the whole support, so that the answer depends on nothing but the task.
    """
    ways, labels = support_mask.any(2), one_hot(support_mask)
    images, there = in_a_row(support, support_mask)
    images = unit(images)

    def gradient(weights: Tensor) -> Tensor:
        scores = cosine_scores(weights, images, scale)
        slope = cross_entropy_slope(softmax(scores, ways), labels, there)
        return cosine_gradient(weights, images, scale, scores, slope)

    start = prototypes(images.view_as(support), support_mask)
    weights = momentum(start, gradient, steps, lr, weight_decay)
    return probabilities(cosine_scores(weights, unit(blank(query, query_mask)), scale), ways, query_mask)
