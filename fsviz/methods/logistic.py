"""Logistic regression by Adam (as in Bontonou et al. 2020), inductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cross_entropy, linear_head, with_bias
from fsviz.methods.geometry import blank, in_a_row, probabilities, unit


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
    ways = support_mask.any(2)
    images, there = in_a_row(support, support_mask)
    images, query = with_bias(unit(images)), with_bias(unit(blank(query, query_mask)))
    stops = (epochs * ((there.sum(1) + batch_size - 1) // batch_size)).clamp(max=max_steps)
    steps = int(stops.max())
    start = images.new_zeros(len(images), support.shape[1], images.shape[2])
    gradient = linear_head(images, 1.0, ways, cross_entropy(support_mask))
    weights = adam(start, gradient, steps, lr, weight_decay, None if bool((stops == steps).all()) else stops)
    return probabilities(torch.bmm(weights, query.transpose(1, 2)), ways, query_mask)
