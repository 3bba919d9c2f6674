"""Logistic regression by Adam on mini-batches (as in Bontonou et al. 2020), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.methods.declaration import Method, integer, lr, weight_decay

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 5  # images of a mini-batch, whatever the number of ways, as in the authors' script

METHOD = Method(
    "logistic",
    "Logistic regression",
    "Bontonou et al. 2020",
    9,
    "inductive",
    "Linear classifier on unit-length support features.",
    (
        integer("epochs", "Epochs", 50, "Passes over the support, of one step per five images.", 1, 500),
        lr(0.01),
        weight_decay(5e-6),
    ),
    family="Fine-tuning",
    batch=BATCH,
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    epochs: int = 50,
    lr: float = 0.01,
    weight_decay: float = 5e-6,
) -> Tensor:
    """A linear layer on features of length one, trained from zero by Adam on shuffled mini-batches of five images.

    Supports of the same number of images are shuffled in the same way, so a task has the same scores every time and
    in any company. (Steps on the whole support would be simpler but score several points lower: with less noise in its
    gradients, Adam fits every dimension, useful or not.)
    """
    import torch

    from fsviz.methods.descent import with_bias
    from fsviz.methods.geometry import blank, unit, with_ways

    support, query = unit(blank(support, support_mask)), with_bias(unit(blank(query, query_mask)))
    weights = train(support, support_mask, epochs, lr, weight_decay)
    return with_ways(torch.bmm(weights, query.transpose(1, 2)), support_mask.any(2))


def train(
    support: Tensor, support_mask: Tensor, epochs: int = 50, lr: float = 0.01, weight_decay: float = 5e-6
) -> Tensor:
    """The weights (T, W, D + 1) of that layer, the bias last, for support features (T, W, S, D) as they are.

    A task of N support images takes epochs * ceil(N / 5) steps. Padded places must hold zeros.
    """
    import torch

    from fsviz.methods.descent import adam, with_bias
    from fsviz.methods.geometry import equal_shares, softmax

    n_tasks, n_way, n_shot = support_mask.shape
    ways, there = support_mask.any(2), support_mask.flatten(1)
    batches, stops = _mini_batches(there.sum(1), epochs)
    shares = equal_shares((batches >= 0).flatten(0, 1), support.dtype).view(-1, n_tasks, 1, BATCH)
    order = there.sort(dim=1, descending=True, stable=True).indices  # images first, padding last
    places = order.expand(len(batches), -1, -1).gather(2, batches.clamp(min=0))
    labels = (places // n_shot).unsqueeze(2)
    rows = (places + torch.arange(n_tasks, device=places.device).unsqueeze(1) * n_way * n_shot).flatten(1)
    steps = zip(rows, labels, shares, strict=True)

    images = with_bias(support).flatten(0, 2)
    batch = images.new_empty(n_tasks * BATCH, images.shape[1])  # filled anew in every step, as is the slope
    slope = images.new_empty(n_tasks, n_way, images.shape[1])
    minus_one = images.new_full((n_tasks, 1, BATCH), -1.0)

    def gradient(weights: Tensor) -> Tensor:
        row, label, share = next(steps)
        torch.index_select(images, 0, row, out=batch)
        minibatch = batch.view(n_tasks, BATCH, -1)
        error = softmax(torch.bmm(minibatch, weights.transpose(1, 2)).transpose(1, 2), ways)
        error.scatter_add_(1, label, minus_one).mul_(share)
        return torch.bmm(error, minibatch, out=slope)

    same = bool((stops == len(batches)).all())
    return adam(torch.zeros_like(slope), gradient, len(batches), lr, weight_decay, None if same else stops)


def _mini_batches(sizes: Tensor, epochs: int) -> tuple[Tensor, Tensor]:
    """Mini-batches (steps, T, 5) of tasks with these numbers of support images (T,), and their steps (T,).

    They hold numbers below a task's size, each once per epoch, and -1 for no image.
    """
    import torch

    distinct, which = sizes.unique(return_inverse=True)
    plans = [_shuffled(int(size), epochs) for size in distinct]
    steps = torch.tensor([len(plan) for plan in plans])
    together = torch.full((int(steps.max()), len(plans), BATCH), -1)
    for at, plan in enumerate(plans):
        together[: len(plan), at] = torch.from_numpy(plan)
    return together.to(sizes.device)[:, which], steps.to(sizes.device)[which]


def _shuffled(size: int, epochs: int) -> np.ndarray:
    """Mini-batches (steps, 5) of the numbers below size, shuffled anew every epoch; the last of one may have gaps."""
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(size) for _ in range(epochs)])
    padded = np.pad(order, ((0, 0), (0, -size % BATCH)), constant_values=-1)
    return padded.reshape(-1, BATCH)
