"""Logistic regression by Adam (as in Bontonou et al. 2020), inductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cross_entropy_slope, with_bias
from fsviz.methods.geometry import blank, in_a_row, one_hot, probabilities, softmax, unit


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    epochs: int = 50,
    batch_size: int = 5,
    max_steps: int = 500,
    lr: float = 0.01,
    weight_decay: float = 5e-6,
) -> Tensor:
    """A linear layer on features of length one, from zero, trained by Adam.

    It takes as many steps as `epochs` passes in mini-batches of `batch_size` would (at most `max_steps`), but every
    step sees the whole support: nothing depends on the order of the images.
    """
    ways, labels = support_mask.any(2), one_hot(support_mask)
    images, there = in_a_row(support, support_mask)
    images, query = with_bias(unit(images)), with_bias(unit(blank(query, query_mask)))
    stops = (epochs * ((there.sum(1) + batch_size - 1) // batch_size)).clamp(max=max_steps)
    steps = int(stops.max())

    def gradient(weights: Tensor) -> Tensor:
        probability = softmax(torch.bmm(weights, images.transpose(1, 2)), ways)
        return torch.bmm(cross_entropy_slope(probability, labels, there), images)

    start = images.new_zeros(len(images), support.shape[1], images.shape[2])
    weights = adam(start, gradient, steps, lr, weight_decay, None if bool((stops == steps).all()) else stops)
    return probabilities(torch.bmm(weights, query.transpose(1, 2)), ways, query_mask)
