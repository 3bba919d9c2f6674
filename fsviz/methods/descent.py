"""Gradient descent on the heads of a batch of tasks, with gradients written out by hand.

A head is one weight vector per way (T, W, D); images (T, K, D) lie in a row, their scores are (T, W, K).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsviz.methods.geometry import equal_shares, lengths, one_hot, softmax, squared_distances

Gradient = Callable[[Tensor], Tensor]  # weights (T, W, D) -> gradient of the loss for them
ScoreSlope = Callable[[Tensor], Tensor]  # probabilities (T, W, K) -> gradient for the scores; may overwrite them
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


def adam(
    start: Tensor, gradient: Gradient, steps: int, lr: float, weight_decay: float = 0.0, stops: Tensor | None = None
) -> Tensor:
    """Adam (Kingma & Ba 2015) from `start`; weight_decay adds that share of the weights to the gradient.

    stops (T,), if given, ends each task after its own number of steps.
    """
    weights = start.clone(memory_format=torch.contiguous_format)
    mean, square = torch.zeros_like(weights), torch.zeros_like(weights)
    at_stop = weights.clone() if stops is not None else None
    move = _move_in_one_pass if weights.device.type == "cpu" and weights.dtype == torch.float32 else _move
    for step in range(1, steps + 1):
        # both bias corrections are folded into the size of the step
        correction = (1 - BETA_2**step) ** 0.5
        size = lr * correction / (1 - BETA_1**step)
        move(weights, gradient(weights), mean, square, weight_decay, size, EPSILON * correction)
        if at_stop is not None and stops is not None:
            at_stop = torch.where((stops == step)[:, None, None], weights, at_stop)
    return weights if at_stop is None else at_stop


def _move(
    weights: Tensor, slope: Tensor, mean: Tensor, square: Tensor, decay: float, size: float, epsilon: float
) -> None:
    """One step of Adam in place, on any device."""
    slope = slope.add(weights, alpha=decay)
    mean.lerp_(slope, 1 - BETA_1)
    square.mul_(BETA_2).addcmul_(slope, slope, value=1 - BETA_2)
    weights.addcdiv_(mean, square.sqrt().add_(epsilon), value=-size)


def _move_in_one_pass(
    weights: Tensor, slope: Tensor, mean: Tensor, square: Tensor, decay: float, size: float, epsilon: float
) -> None:
    """_move for float32 on a CPU, where six passes over the arrays would take longer than the gradient itself."""
    arrays = [array.view(-1).numpy() for array in (weights, slope.contiguous(), mean, square)]
    _move_loop(arrays[0], arrays[1], arrays[2], arrays[3], np.float32(decay), np.float32(size), np.float32(epsilon))


@njit(cache=True, nogil=True, error_model="numpy")
def _move_loop(
    weights: np.ndarray,
    slope: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    decay: np.float32,
    size: np.float32,
    epsilon: np.float32,
) -> None:
    rate_1, rate_2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
    for i in range(weights.size):
        s = slope[i] + decay * weights[i]
        mean[i] += rate_1 * (s - mean[i])
        square[i] += rate_2 * (s * s - square[i])
        weights[i] -= size * mean[i] / (np.sqrt(square[i]) + epsilon)


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


def euclidean_head(images: Tensor, scale: float, ways: Tensor, score_slope: ScoreSlope) -> Gradient:
    """Gradient for the weights of a head whose scores are -scale * distance of a way's weights w and an image x.

    d(-scale |w - x|)/dw = -scale (w - x) / |w - x|, and 0 if they meet.
    """
    squares = lengths(images).square()

    def gradient(weights: Tensor) -> Tensor:
        distances = squared_distances(images, weights, squares).sqrt_()
        slope = score_slope(softmax(-scale * distances, ways))
        pulls = slope.mul_(-scale).div_(distances.masked_fill_(distances == 0, torch.inf))
        return torch.baddbmm(weights * pulls.sum(-1, keepdim=True), pulls, images, alpha=-1)

    return gradient


def cross_entropy(support_mask: Tensor, dtype: torch.dtype) -> ScoreSlope:
    """Gradient for the scores of the mean cross-entropy over the support: (p - y) / n with one-hot labels y."""
    labels = one_hot(support_mask, dtype)
    share = equal_shares(support_mask.flatten(1), dtype)
    return lambda probability: probability.sub_(labels).mul_(share)


def with_bias(images: Tensor) -> Tensor:
    """The images with a constant 1 as last dimension: its weight is the bias of a linear head."""
    return torch.nn.functional.pad(images, (0, 1), value=1.0)
