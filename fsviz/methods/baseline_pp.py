"""Baseline++ (Chen et al. 2019), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, lr, scale, steps, weight_decay

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "baseline_pp",
    "Baseline++",
    "Chen et al. 2019",
    12,
    "inductive",
    "Trains one direction per class on the support and scores a query by its cosine with each.",
    (steps(100), lr(0.01), weight_decay(1e-3), scale(10.0)),
    family="Fine-tuning",
)


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
    from fsviz.methods.descent import cosine_head, cross_entropy, momentum
    from fsviz.methods.geometry import blank, cosine, in_a_row, prototypes, unit, with_ways

    ways = support_mask.any(2)
    images, _ = in_a_row(support, support_mask)
    start = prototypes(unit(images).view_as(support), support_mask)
    gradient = cosine_head(images, scale, ways, cross_entropy(support_mask, images.dtype))
    weights = momentum(start, gradient, steps, lr, weight_decay)
    return with_ways(scale * cosine(blank(query, query_mask), weights), ways)
