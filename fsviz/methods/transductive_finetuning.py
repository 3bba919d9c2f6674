"""Transductive finetuning (Dhillon et al. 2020), of the prototypes only, transductive."""

from __future__ import annotations

import torch
from torch import Tensor

from fsviz.methods.descent import adam, cross_entropy
from fsviz.methods.geometry import (
    blank,
    equal_shares,
    in_a_row,
    lengths,
    prototypes,
    softmax,
    squared_distances,
    with_ways,
)


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
    ways = support_mask.any(2)
    images, _ = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = torch.cat([images, blank(query, query_mask)], 1)
    fit = cross_entropy(support_mask, images.dtype)
    share = equal_shares(query_mask, images.dtype)
    squares = lengths(images).square()

    def gradient(centres: Tensor) -> Tensor:
        distances = squared_distances(images, centres, squares).sqrt_()
        probability = softmax(-scale * distances, ways)
        guess = probability[..., n_support:]
        # gradient of the entropy for the probabilities, up to a constant that softmax's own gradient removes
        pull = (guess + 1e-12).log_().neg_()
        pull = pull.sub_((guess * pull).sum(1, keepdim=True)).mul_(guess).mul_(share)
        slope = torch.cat([fit(probability[..., :n_support]), pull], -1)
        # d(-s |p - x|)/dp = -s (p - x) / |p - x|, and 0 where they meet
        pulls = slope.mul_(-scale).div_(distances.masked_fill_(distances == 0, torch.inf))
        return torch.baddbmm(centres * pulls.sum(-1, keepdim=True), pulls, images, alpha=-1)

    centres = adam(prototypes(support, support_mask), gradient, steps, lr)
    return with_ways(-scale * squared_distances(images[:, n_support:], centres).sqrt_(), ways)
