"""Every method again, for one task, in double precision, as its paper says it: slow, plain, and without masks.

A function takes support (a list of (shots, D) tensors, one per class) and query (M, D), and returns (M, classes).
Gradients come from autograd and steps from torch.optim, nothing from fsviz.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, one_hot


def labels_of(support: list[Tensor]) -> Tensor:
    return torch.cat([torch.full((len(images),), label) for label, images in enumerate(support)])


def means_of(support: list[Tensor]) -> Tensor:
    return torch.stack([images.mean(0) for images in support])


def entropy(probability: Tensor) -> Tensor:
    return -(probability * (probability + 1e-12).log()).sum(-1)


def descend(optimiser: torch.optim.Optimizer, loss: Callable[[], Tensor], steps: int) -> None:
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


def protonet(support: list[Tensor], query: Tensor, distance: str = "euclidean", scale: float = 1.0) -> Tensor:
    rows = []
    for image in query:
        scores = []
        for images in support:
            prototype = images.mean(0)
            if distance == "euclidean":
                scores.append(-((image - prototype) ** 2).sum())
            else:
                scores.append(image @ prototype / image.norm() / prototype.norm())
        rows.append((scale * torch.stack(scores)).softmax(0))
    return torch.stack(rows)


def simpleshot(
    support: list[Tensor],
    query: Tensor,
    centring: str = "dataset",
    distance: str = "euclidean",
    scale: float = 1.0,
    normalise: str = "l2",
    centre: Tensor | None = None,
) -> Tensor:
    if centring == "none":
        middle = torch.zeros(query.shape[1], dtype=query.dtype)
    elif centring == "dataset" and centre is not None:
        middle = centre.to(query)
    else:
        middle = torch.cat(support).mean(0)
    moved, query = [images - middle for images in support], query - middle
    if normalise == "l2":
        moved, query = [normalize(images, dim=1) for images in moved], normalize(query, dim=1)
    return protonet(moved, query, distance, scale)


def knn(support: list[Tensor], query: Tensor, k: int = 1, distance: str = "euclidean") -> Tensor:
    images, labels = torch.cat(support), labels_of(support)
    rows = []
    for image in query:
        if distance == "euclidean":
            apart = (images - image).norm(dim=1)
        else:
            apart = 1 - normalize(images, dim=1) @ normalize(image, dim=0)
        votes = torch.zeros(len(support), dtype=query.dtype)
        for neighbour in apart.argsort()[:k]:
            votes[labels[neighbour]] += 1
        closest = torch.stack([apart[labels == label].min() for label in range(len(support))])
        votes += 0.01 * closest.min() / closest
        rows.append(votes / votes.sum())
    return torch.stack(rows)


def matching(support: list[Tensor], query: Tensor, scale: float = 1.0, normalise: str = "both") -> Tensor:
    query = normalize(query, dim=1) if normalise == "both" else query
    attention = (scale * query @ normalize(torch.cat(support), dim=1).T).softmax(1)
    return attention @ one_hot(labels_of(support)).to(query)


def finetune(
    support: list[Tensor], query: Tensor, head: str = "cosine", steps: int = 10, lr: float = 1e-3, scale: float = 1.0
) -> Tensor:
    images, labels = torch.cat(support), labels_of(support)
    if head == "linear":
        layer = torch.nn.Linear(query.shape[1], len(support), dtype=query.dtype)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        optimiser = torch.optim.Adam(layer.parameters(), lr=lr)
        descend(optimiser, lambda: cross_entropy(scale * layer(images), labels), steps)
        return (scale * layer(query)).softmax(1).detach()
    weights = means_of(support).requires_grad_()

    def scores(features: Tensor) -> Tensor:
        return scale * normalize(features, dim=1) @ normalize(weights, dim=1).T

    descend(torch.optim.Adam([weights], lr=lr), lambda: cross_entropy(scores(images), labels), steps)
    return scores(query).softmax(1).detach()


def baseline_pp(
    support: list[Tensor],
    query: Tensor,
    steps: int = 100,
    lr: float = 0.01,
    weight_decay: float = 1e-3,
    scale: float = 10.0,
) -> Tensor:
    images, labels = torch.cat(support), labels_of(support)
    weights = means_of([normalize(images, dim=1) for images in support]).requires_grad_()

    def scores(features: Tensor) -> Tensor:
        return scale * normalize(features, dim=1) @ normalize(weights, dim=1).T

    optimiser = torch.optim.SGD([weights], lr=lr, momentum=0.9, dampening=0.9, weight_decay=weight_decay)
    descend(optimiser, lambda: cross_entropy(scores(images), labels), steps)
    return scores(query).softmax(1).detach()


def logistic(
    support: list[Tensor], query: Tensor, epochs: int = 50, lr: float = 0.01, weight_decay: float = 5e-6
) -> Tensor:
    images, labels = normalize(torch.cat(support), dim=1), labels_of(support)
    layer = torch.nn.Linear(query.shape[1], len(support), dtype=query.dtype)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimiser = torch.optim.Adam(layer.parameters(), lr=lr, weight_decay=weight_decay)
    luck = np.random.default_rng(0)
    for _ in range(epochs):
        for batch in torch.from_numpy(luck.permutation(len(images))).split(5):
            optimiser.zero_grad()
            cross_entropy(layer(images[batch]), labels[batch]).backward()
            optimiser.step()
    return layer(normalize(query, dim=1)).softmax(1).detach()


def ridge(support: list[Tensor], query: Tensor, penalty: float = 1.0, scale: float = 10.0) -> Tensor:
    images = normalize(torch.cat(support), dim=1)
    targets = one_hot(labels_of(support)).to(query)
    # the primal form of the textbook: (X'X + penalty I)^-1 X'Y
    matrix = images.T @ images + penalty * torch.eye(images.shape[1], dtype=query.dtype)
    weights = torch.linalg.solve(matrix, images.T @ targets)
    return (scale * normalize(query, dim=1) @ weights).softmax(1)


def rectified(support: list[Tensor], query: Tensor) -> Tensor:
    prototypes = means_of(support)
    shifted = query + torch.cat(support).mean(0) - query.mean(0)
    guesses = (normalize(shifted, dim=1) @ normalize(prototypes, dim=1).T).argmax(1)
    better = []
    for label, images in enumerate(support):
        members = torch.cat([images, shifted[guesses == label]])
        weights = (normalize(members, dim=1) @ normalize(prototypes[label], dim=0)).exp()
        better.append((weights[:, None] * members).sum(0) / weights.sum())
    return torch.stack(better)


def bd_cspn(support: list[Tensor], query: Tensor, scale: float = 10.0) -> Tensor:
    return (scale * normalize(query, dim=1) @ normalize(rectified(support, query), dim=1).T).softmax(1)


def tim(
    support: list[Tensor],
    query: Tensor,
    distance: str = "euclidean",
    steps: int = 100,
    lr: float = 1e-3,
    scale: float = 1.0,
    cross_entropy_weight: float = 1.0,
    marginal_weight: float = 1.0,
    conditional_weight: float = 0.1,
) -> Tensor:
    images, labels = torch.cat(support), labels_of(support)
    weights = means_of(support).requires_grad_()

    def scores(features: Tensor) -> Tensor:
        if distance == "euclidean":
            return -scale * torch.cdist(features, weights)
        return scale * normalize(features, dim=1) @ normalize(weights, dim=1).T

    def loss() -> Tensor:
        guesses = scores(query).softmax(1)
        fit = cross_entropy(scores(images), labels)
        return (
            cross_entropy_weight * fit
            - marginal_weight * entropy(guesses.mean(0))
            + conditional_weight * entropy(guesses).mean()
        )

    descend(torch.optim.Adam([weights], lr=lr), loss, steps)
    return scores(query).softmax(1).detach()


def transductive_finetuning(
    support: list[Tensor], query: Tensor, steps: int = 25, lr: float = 5e-5, scale: float = 1.0
) -> Tensor:
    images, labels = torch.cat(support), labels_of(support)
    prototypes = means_of(support).requires_grad_()

    def scores(features: Tensor) -> Tensor:
        return -scale * torch.cdist(features, prototypes)

    def loss() -> Tensor:
        return cross_entropy(scores(images), labels) + entropy(scores(query).softmax(1)).mean()

    descend(torch.optim.Adam([prototypes], lr=lr), loss, steps)
    return scores(query).softmax(1).detach()


def sinkhorn(cost: Tensor, share: float) -> Tensor:
    """Plan (M, classes): rows sum to 1, columns to `share`."""
    plan = (cost.amin(1, keepdim=True) - cost).exp()
    for _ in range(1000):
        before = plan.sum(1)
        plan = plan / (before[:, None] + 1e-10)
        plan = plan * share / (plan.sum(0) + 1e-10)
        if (plan.sum(1) - before).abs().max() < 1e-6:
            break
    return plan


def pt_map(
    support: list[Tensor],
    query: Tensor,
    steps: int = 20,
    lr: float = 0.2,
    sharpness: float = 10.0,
    power: float = 0.5,
    normalise: str = "after",
) -> Tensor:
    def transformed(features: Tensor) -> Tensor:
        if normalise == "before":
            features = normalize(features, dim=1)
        features = (features.clamp(min=0) + 1e-6) ** power
        return normalize(features, dim=1) if normalise == "after" else features

    targets = one_hot(labels_of(support)).to(query)
    support, query = [transformed(images) for images in support], transformed(query)
    images, prototypes = torch.cat([*support, query]), means_of(support)
    share = len(query) / len(support)
    for _ in range(steps):
        plan = sinkhorn(sharpness * torch.cdist(query, prototypes) ** 2, share)
        weights = torch.cat([targets, plan])
        means = weights.T @ images / weights.sum(0)[:, None]
        prototypes = prototypes + lr * (means - prototypes)
    plan = sinkhorn(sharpness * torch.cdist(query, prototypes) ** 2, share)
    return plan / plan.sum(1, keepdim=True)


def laplacian_shot(
    support: list[Tensor],
    query: Tensor,
    neighbours: int = 2,
    steps: int = 20,
    smoothness: float = 0.7,
    normalise: str = "l2",
) -> Tensor:
    if normalise == "l2":
        support, query = [normalize(images, dim=1) for images in support], normalize(query, dim=1)
    apart = torch.cdist(query, rectified(support, query)) ** 2
    graph = torch.zeros(len(query), len(query), dtype=query.dtype)
    for i, image in enumerate(query):
        distances = (query - image).norm(dim=1)
        distances[i] = torch.inf
        for j in distances.argsort()[: min(neighbours, len(query) - 1)]:
            graph[i, j] = 1
    assigned, bound = (-apart).softmax(1), torch.inf
    for step in range(steps):
        assigned = (smoothness * graph @ assigned - apart).softmax(1)
        terms = assigned * ((assigned + 1e-12).log() + apart - smoothness * graph @ assigned)
        new = float(terms.sum())
        if step > 1 and abs(new - bound) <= 1e-6 * abs(bound):
            break
        bound = new
    return assigned
