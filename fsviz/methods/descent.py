"""Gradient descent on the heads of a batch of tasks, with gradients written out by hand.

A head is one weight vector per way (T, W, D); images (T, K, D) lie in a row, their scores are (T, W, K).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fsviz.methods.geometry import equal_shares, lengths, one_hot, softmax

Gradient = Callable[[Tensor], Tensor]  # weights (T, W, D) -> gradient of the loss for them
ScoreSlope = Callable[[Tensor], Tensor]  # probabilities (T, W, K) -> gradient for the scores; may overwrite them
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


def adam(
    start: Tensor, gradient: Gradient, steps: int, lr: float, weight_decay: float = 0.0, stops: Tensor | None = None
) -> Tensor:
    """Adam (Kingma & Ba 2015) from `start`; weight_decay adds that share of the weights to the gradient.

    stops (T,), where given, ends each task after its own number of steps.
    """
    weights = start.clone()
    mean, square, root = torch.zeros_like(weights), torch.zeros_like(weights), torch.empty_like(weights)
    kept = start.clone() if stops is not None else None
    for step in range(1, steps + 1):
        slope = gradient(weights)
        if weight_decay:
            slope = slope.add_(weights, alpha=weight_decay)
        mean.lerp_(slope, 1 - BETA_1)
        square.mul_(BETA_2).addcmul_(slope, slope, value=1 - BETA_2)
        # both bias corrections, folded into the step so that no array is passed over for them
        correction = (1 - BETA_2**step) ** 0.5
        torch.sqrt(square, out=root)
        root.add_(EPSILON * correction)
        weights.addcdiv_(mean, root, value=-lr * correction / (1 - BETA_1**step))
        if kept is not None:
            kept = torch.where((stops == step)[:, None, None], weights, kept)
    return weights if kept is None else kept


def momentum(start: Tensor, gradient: Gradient, steps: int, lr: float, weight_decay: float = 0.0) -> Tensor:
    """Gradient descent with momentum 0.9 and dampening 0.9: the step follows a running mean of the gradients."""
    weights, running = start.clone(), None
    for _ in range(steps):
        slope = gradient(weights).add_(weights, alpha=weight_decay)
        running = slope if running is None else running.lerp_(slope, 0.1)
        weights.sub_(running, alpha=lr)
    return weights


def cosine_head(images: Tensor, scale: float, ways: Tensor, score_slope: ScoreSlope) -> Gradient:
    """Gradient for the weights of a head whose scores are scale * cosine of a way's weights w and an image x.

    score_slope gives the gradient of the loss for the scores from the probabilities, both (T, W, K). With l = |w|:
    d(scale cos)/dw = scale (x / |x| - cos w / l) / l. Lengths are divided out of the scores, so that the images
    themselves are neither scaled nor copied.
    """
    factor = scale / lengths(images)

    def gradient(weights: Tensor) -> Tensor:
        length = lengths(weights).transpose(1, 2)
        factors = factor / length
        scores = torch.bmm(weights, images.transpose(1, 2)).mul_(factors)
        slope = score_slope(softmax(scores, ways))
        along = (slope * scores).sum(-1, keepdim=True) / length.square()
        return torch.baddbmm(weights * along, slope.mul_(factors), images, beta=-1)

    return gradient


def linear_head(images: Tensor, scale: float, ways: Tensor, score_slope: ScoreSlope) -> Gradient:
    """Gradient for the weights of a head whose scores are scale * product of a way's weights and an image."""

    def gradient(weights: Tensor) -> Tensor:
        scores = torch.bmm(weights, images.transpose(1, 2))
        return torch.bmm(score_slope(softmax(scores.mul_(scale), ways)).mul_(scale), images)

    return gradient


def cross_entropy(support_mask: Tensor) -> ScoreSlope:
    """Gradient for the scores of the mean cross-entropy over the support: (p - y) / n with one-hot labels y."""
    labels = one_hot(support_mask)
    share = equal_shares(support_mask.flatten(1))
    return lambda probability: probability.sub_(labels).mul_(share)


def with_bias(images: Tensor) -> Tensor:
    """The images with a constant 1 as last dimension: its weight is the bias of a linear head."""
    return torch.nn.functional.pad(images, (0, 1), value=1.0)
