"""Gradient steps on the support of a task, as a function of the first weights; many tasks at once.

Dimensions: T tasks, n support images, m query images, W ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from fsviz.settings import Settings
from fsviz.training.networks import Images, Learner, Model, labels_of, normalised_by_first, update

Weights = dict[str, Tensor]
_TEST_TASKS = 8  # tasks adapted at once if nothing is learned from them


def adapt(
    loss: Callable[[Weights], Tensor], weights: Mapping[str, Tensor], steps: int, lr: float, first_order: bool = False
) -> Weights:
    """These weights after `steps` steps of gradient descent on a loss of them.

    What comes out hangs on what went in through every step (second order), or, with first_order, as if each step had
    added a constant (Finn et al. 2017, section 5.2).
    """
    fast = dict(weights)
    for _ in range(steps):
        slope = grad(loss)(fast)
        fast = {name: w - lr * (slope[name].detach() if first_order else slope[name]) for name, w in fast.items()}
    return fast


def task_scores(
    model: Model, weights: Mapping[str, Tensor], support: Tensor, query: Tensor, only: str, settings: Settings
) -> Tensor:
    """Scores (m, W) of one task's queries after adapting the weights whose names start with `only` on its support.

    support (n, 3, height, width), its classes in a row; "" adapts all weights
    """
    n_way = settings["n_way"]
    labels = labels_of(n_way, len(support) // n_way, support.device)
    moving = {name: w for name, w in weights.items() if name.startswith(only)}
    still = {name: w for name, w in weights.items() if name not in moving}
    by_support = settings["statistics"] == "support"
    both = torch.cat([support, query])
    n = len(support)

    def forward(fast: Weights, images: Tensor) -> Tensor:
        return functional_call(model, {**still, **fast}, (images,))

    if only:  # the backbone stays: its features are computed once, whatever the head does
        with normalised_by_first(model, n if by_support else None):
            features = functional_call(model.backbone, _below(weights, "backbone."), (both,))
        apply = {"support": features[:n], "query": features[n:]}

        def head(fast: Weights, which: str) -> Tensor:
            return functional_call(model.head, _below(fast, "head."), (apply[which],))

        fast = adapt(lambda w: F.cross_entropy(head(w, "support"), labels), moving, **_steps(settings))
        return head(fast, "query")
    fast = adapt(lambda w: F.cross_entropy(forward(w, support), labels), moving, **_steps(settings))
    if not by_support:
        return forward(fast, query)
    with normalised_by_first(model, n):
        return forward(fast, both)[n:]


def meta_step(
    learner: Learner, images: Images, batch: tuple[np.ndarray, np.ndarray], only: str, settings: Settings
) -> tuple[float, float]:
    """One step of Adam on the loss of the queries after adapting; returns that loss and their accuracy."""
    support, query = (images(_flat(rows)) for rows in batch)
    labels = labels_of(batch[1].shape[1], batch[1].shape[2], support.device)
    learner.model.train()
    weights = dict(learner.model.named_parameters())

    def of_task(one_support: Tensor, one_query: Tensor) -> Tensor:
        return task_scores(learner.model, weights, one_support, one_query, only, settings)

    logits = vmap(of_task)(support, query)  # T, m, W
    loss = F.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)))
    update(learner, loss)
    return float(loss.detach()), float((logits.detach().argmax(2) == labels).float().mean())


@torch.no_grad()
def adapted_scores(
    learner: Learner, images: Images, support: np.ndarray, query: np.ndarray, only: str, settings: Settings
) -> Tensor:
    """Scores (T, W, W Q) of the queries of test tasks, each after adapting on its support."""
    learner.model.train()  # statistics are those of the task
    weights = {name: w.detach() for name, w in learner.model.named_parameters()}
    first_order = {**settings, "order": "first"}  # nothing looks through the steps

    def of_task(one_support: Tensor, one_query: Tensor) -> Tensor:
        return task_scores(learner.model, weights, one_support, one_query, only, first_order)

    parts = [
        vmap(of_task)(
            images(_flat(support[start : start + _TEST_TASKS])), images(_flat(query[start : start + _TEST_TASKS]))
        )
        for start in range(0, len(support), _TEST_TASKS)
    ]
    return torch.cat(parts).transpose(1, 2)


def _steps(settings: Settings) -> dict[str, Any]:
    return {
        "steps": settings["inner_steps"],
        "lr": settings["inner_lr"],
        "first_order": settings["order"] == "first",
    }


def _below(weights: Mapping[str, Tensor], prefix: str) -> Weights:
    return {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}


def _flat(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), -1)
