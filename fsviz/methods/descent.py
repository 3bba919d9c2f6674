"""Gradient descent on the heads of a batch of tasks, with gradients written out by hand.

A head is one weight vector per way (T, W, D); images (T, K, D) lie in a row, their scores are (T, W, K).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fsviz.methods.geometry import SMALLEST

Gradient = Callable[[Tensor], Tensor]
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


def cosine_scores(weights: Tensor, images: Tensor, scale: float) -> Tensor:
    """scale * cosine of every weight vector and every image; the images must have length one."""
    lengths = torch.linalg.vector_norm(weights, dim=-1, keepdim=True).clamp_(min=SMALLEST)
    return torch.bmm(weights, images.transpose(1, 2)).mul_(scale / lengths)


def cosine_gradient(weights: Tensor, images: Tensor, scale: float, scores: Tensor, slope: Tensor) -> Tensor:
    """Gradient of a loss for the weights, from its gradient `slope` for the `scores` of cosine_scores.

    With w of length l and unit images x: d(s cos)/dw = s (x - cos w / l) / l.
    """
    lengths = torch.linalg.vector_norm(weights, dim=-1, keepdim=True).clamp_(min=SMALLEST)
    along = (slope * scores).sum(-1, keepdim=True) / lengths.square()
    return torch.baddbmm(weights * along, slope * (scale / lengths), images, beta=-1)


def cross_entropy_slope(probability: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Gradient for the scores of the mean cross-entropy over the images that are there: (p - y) / n."""
    share = mask / mask.sum(1, keepdim=True).clamp(min=1)
    return (probability - labels).mul_(share.unsqueeze(1))


def with_bias(images: Tensor) -> Tensor:
    """The images with a constant 1 as last dimension: its weight is the bias of a linear head."""
    return torch.nn.functional.pad(images, (0, 1), value=1.0)
