"""Logistic regression by Adam on mini-batches (as in Bontonou et al. 2020), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, lr, weight_decay, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

METHOD = Method(
    "logistic",
    "Logistic regression",
    "Bontonou et al. 2020",
    9,
    "inductive",
    "Trains a linear classifier on support features of length one, on one image of each class at a time.",
    (
        whole("epochs", "Epochs", 50, "Passes over the support.", 1, 500),
        whole("max_steps", "Most steps", 500, "At most so many steps, however large the support.", 1, 10000),
        lr(0.01),
        weight_decay(5e-6),
    ),
    family="Fine-tuning",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    epochs: int = 50,
    max_steps: int = 500,
    lr: float = 0.01,
    weight_decay: float = 5e-6,
) -> Tensor:
    """A linear layer on features of length one, from zero, trained by Adam on mini-batches of one image per class.

    A 5-way task is thus trained on mini-batches of five, as published, but in the order of the support instead of at
    random: nothing depends on luck or on the other tasks. (Steps on the whole support would be simpler but score
    several points lower: with less noise in its gradients, Adam fits every dimension, useful or not.)
    """
    import torch

    from fsviz.methods.descent import with_bias
    from fsviz.methods.geometry import blank, unit, with_ways

    support, query = unit(blank(support, support_mask)), with_bias(unit(blank(query, query_mask)))
    weights = train(support, support_mask, epochs, max_steps, lr, weight_decay)
    return with_ways(torch.bmm(weights, query.transpose(1, 2)), support_mask.any(2))


def train(
    support: Tensor,
    support_mask: Tensor,
    epochs: int = 50,
    max_steps: int = 500,
    lr: float = 0.01,
    weight_decay: float = 5e-6,
) -> Tensor:
    """The weights (T, W, D + 1) of that layer, the bias last, for support features (T, W, S, D) as they are.

    Padded places must hold zeros.
    """
    import torch

    from fsviz.methods.descent import adam, with_bias
    from fsviz.methods.geometry import softmax

    ways, images = support_mask.any(2), with_bias(support)
    n_batches = support_mask.sum(2).amax(1).clamp(min=1)
    stops = (epochs * n_batches).clamp(max=max_steps)
    steps = int(stops.max())
    batches = _mini_batches(images, support_mask, n_batches)
    labels = torch.eye(images.shape[1], dtype=images.dtype, device=images.device)

    def gradient(weights: Tensor) -> Tensor:
        batch, share = next(batches)
        probability = softmax(torch.bmm(weights, batch.transpose(1, 2)), ways)
        return torch.bmm(probability.sub_(labels).mul_(share), batch)

    return adam(
        torch.zeros_like(images[:, :, 0]),
        gradient,
        steps,
        lr,
        weight_decay,
        None if bool((stops == steps).all()) else stops,
    )


def _mini_batches(images: Tensor, mask: Tensor, n_batches: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Without end: one image per class (T, W, D) and their shares (T, 1, W) of the mean loss.

    Batch s holds the s-th image of each class that has one; each task starts over after its own number of batches.
    """
    from itertools import count, cycle

    import torch

    from fsviz.methods.geometry import equal_shares

    if not bool(mask.all()):  # images first, padding last
        mask, order = mask.sort(dim=2, descending=True, stable=True)
        images = images.gather(2, order.unsqueeze(-1).expand_as(images))
    if bool((n_batches == n_batches[0]).all()):
        each = range(int(n_batches[0]))
        yield from cycle([(images[:, :, s].contiguous(), equal_shares(mask[:, :, s], images.dtype)) for s in each])
    tasks = torch.arange(len(images), device=images.device)
    for step in count():
        s = step % n_batches
        yield images[tasks, :, s], equal_shares(mask[tasks, :, s], images.dtype)
