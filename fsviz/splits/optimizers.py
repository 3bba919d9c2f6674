"""Minimising many small functions of the same form at once: L-BFGS, and plain gradient descent with momentum.

Dimensions: B problems, n numbers each. An objective takes points (b, n) in float64 and the numbers (b,) of the problems
that they belong to, and returns (b,), differentiable by torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

MEMORY = 8  # steps that L-BFGS remembers
ARMIJO = 1e-4  # share of the promised decrease that a step must bring
MOST_HALVINGS = 30
CROWD = 0.7  # share of problems still moving below which the others are taken out
Objective = Callable[["Tensor", "Tensor"], "Tensor"]


def lbfgs(objective: Objective, start: Tensor, steps: int = 500, tolerance: float = 1e-9) -> Tensor:
    """The points (B, n) that L-BFGS reaches from `start` (Nocedal & Wright 2006, algorithm 7.4), each on its own.

    A problem rests when a step no longer lowers it by more than `tolerance`, relative to its value. Steps are halved,
    problem by problem, until they bring the decrease that Armijo asks for. Torch gives the slopes; the rest is numpy,
    whose calls are cheaper where matrices are small.
    """
    import torch

    def slope(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = _slope(objective, torch.from_numpy(at), torch.from_numpy(which))
        return value.numpy(), gradient.numpy()

    ends = start.numpy().copy()
    point, which = ends.copy(), np.arange(len(ends))
    value, gradient = slope(point)
    awake = np.isfinite(value)
    moves: list[np.ndarray] = []
    turns: list[np.ndarray] = []
    curvatures: list[np.ndarray] = []  # 1 / (turn . move), 0 if a pair says nothing
    for step in range(steps):
        direction = -_two_loops(gradient, moves, turns, curvatures)
        promised = _dot(direction, gradient)
        if (promised >= 0).any():  # rounding: go down the gradient instead
            uphill = promised >= 0
            direction[uphill] = -gradient[uphill]
            promised = _dot(direction, gradient)
        length = np.where(awake, 1.0 if step else 1 / np.maximum(np.linalg.norm(gradient, axis=-1), 1.0), 0.0)
        for halving in range(MOST_HALVINGS):
            move = length[:, None] * direction
            new_value, new_gradient = slope(point + move)
            short = awake & ~(new_value <= value + ARMIJO * length * promised)
            if not short.any():
                break
            length = np.where(short, 0.0 if halving == MOST_HALVINGS - 2 else length / 2, length)
        turn = new_gradient - gradient
        product = _dot(turn, move)
        informative = product > 1e-12 * _dot(turn, turn)
        curvatures.append(informative / np.where(informative, product, 1.0))
        moves.append(move)
        turns.append(turn)
        del moves[:-MEMORY], turns[:-MEMORY], curvatures[:-MEMORY]
        awake = awake & (value - new_value > tolerance * (1 + np.abs(value)))
        point, value, gradient = point + move, new_value, new_gradient
        if not awake.any():
            break
        if awake.sum() < CROWD * len(awake):
            ends[which] = point
            point, value, gradient, which = (values[awake] for values in (point, value, gradient, which))
            moves, turns, curvatures = ([values[awake] for values in part] for part in (moves, turns, curvatures))
            awake = awake[awake]
    ends[which] = point
    return torch.from_numpy(ends)


def descent(objective: Objective, start: Tensor, steps: int = 7000, rate: float = 0.1, momentum: float = 0.9) -> Tensor:
    """The points (B, n) after gradient descent with momentum, as torch's SGD does it. They may be far out of range."""
    import torch

    point, speed, which = start.clone(), torch.zeros_like(start), torch.arange(len(start))
    for step in range(steps):
        speed = momentum * speed + _slope(objective, point, which)[1]
        point = point - rate * speed
        if step % 100 == 0 and not torch.isfinite(point).all(-1).any():
            break  # no problem comes back from there
    return point


def _slope(objective: Objective, point: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Values (B,) and gradients (B, n)."""
    import torch

    point = point.detach().requires_grad_()
    value = objective(point, which)
    (gradient,) = torch.autograd.grad(value.sum(), point)
    return value.detach(), gradient


def _two_loops(
    gradient: np.ndarray, moves: list[np.ndarray], turns: list[np.ndarray], curvatures: list[np.ndarray]
) -> np.ndarray:
    """The gradient times the inverse Hessian that the remembered steps suggest."""
    direction = gradient.copy()
    shares = []
    for move, turn, curvature in zip(reversed(moves), reversed(turns), reversed(curvatures), strict=True):
        share = curvature * _dot(move, direction)
        direction -= share[:, None] * turn
        shares.append(share)
    if moves:
        scale = _dot(moves[-1], turns[-1]) / np.maximum(_dot(turns[-1], turns[-1]), 1e-300)
        direction *= np.where(curvatures[-1] > 0, scale, 1.0)[:, None]
    for move, turn, curvature, share in zip(moves, turns, curvatures, reversed(shares), strict=True):
        direction += (share - curvature * _dot(turn, direction))[:, None] * move
    return direction


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The product (B,) of every two rows."""
    return np.einsum("bn,bn->b", first, second)
