"""Transductive finetuning (Dhillon et al. 2020), of the prototypes only, transductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cross_entropy_slope
from fsviz.methods.geometry import blank, in_a_row, one_hot, probabilities, prototypes, softmax, squared_distances


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    steps: int = 25,
    lr: float = 5e-5,
    scale: float = 1.0,
) -> Tensor:
    """Moves the prototypes by Adam on CE(support) + mean entropy of the queries' predictions.

    Scores are minus the Euclidean distances. The backbone stays as it is (the paper trains it too).
    """
    ways, labels = support_mask.any(2), one_hot(support_mask)
    images, there = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = torch.cat([images, blank(query, query_mask)], 1)
    share = (query_mask / query_mask.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1)

    def gradient(centres: Tensor) -> Tensor:
        distances = squared_distances(images, centres).sqrt_()
        probability = softmax(-scale * distances, ways)
        guess = probability[..., n_support:]
        # gradient of the entropy for the probabilities, up to a constant that softmax's own gradient removes
        pull = -(guess + 1e-12).log()
        pull = guess * (pull - (guess * pull).sum(1, keepdim=True))
        slope = torch.cat([cross_entropy_slope(probability[..., :n_support], labels, there), pull * share], -1)
        # d(-s |p - x|)/dp = -s (p - x) / |p - x|, and 0 where they meet
        pulls = torch.where(distances > 0, -scale * slope / distances.clamp(min=1e-30), 0.0)
        return torch.baddbmm(centres * pulls.sum(-1, keepdim=True), pulls, images, alpha=-1)

    centres = adam(prototypes(support, support_mask), gradient, steps, lr)
    distances = squared_distances(images[:, n_support:], centres).sqrt_()
    return probabilities(-scale * distances, ways, query_mask)
