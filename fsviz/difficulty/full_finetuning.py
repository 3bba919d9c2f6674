"""Full finetuning of a backbone on one task's support set (Hu et al. 2022), as in the stress test of Basu et al. 2023.

At every step prototypes are computed from the support images, and augmented copies of the same images are classified
by cosine similarity to them; all weights of the backbone follow the gradient of that loss. Batch norms keep their
running statistics. The network is put back to its first weights after every task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fsviz.errors import BadInput

if TYPE_CHECKING:
    import torch

LEARNING_RATES = (1e-4, 1e-3, 1e-2)
COSINE_SCALE = 10.0

Forward = Callable[["torch.Tensor"], "torch.Tensor"]


def finetuned_scores(
    network: torch.nn.Module,
    forward: Forward,
    support: torch.Tensor,
    support_labels: torch.Tensor,
    query: torch.Tensor,
    learning_rate: float,
    n_steps: int = 50,
    augment: float = 0.9,
    seed: int = 0,
) -> torch.Tensor:
    """Scores (M, W) of the queries after finetuning on the support; their softmax are the probabilities.

    support (n, 3, height, width) and query (M, 3, height, width) are pixels in [0, 1]; forward gives features of such
    pixels through `network`. augment is the probability that a step sees augmented images.
    """
    import torch

    if n_steps < 0 or not learning_rate > 0 or not 0 <= augment <= 1:
        raise BadInput("Finetuning needs n_steps >= 0, a positive learning rate, and augment between 0 and 1.")
    n_way = int(support_labels.max()) + 1
    generator = torch.Generator().manual_seed(seed)
    first_weights = {name: value.detach().clone() for name, value in network.state_dict().items()}
    required = {name: p.requires_grad for name, p in network.named_parameters()}
    network.eval().requires_grad_(True)
    try:
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        for _ in range(n_steps):
            switched_on = bool(torch.rand((), generator=generator) < augment)
            images = augmented(support, generator) if switched_on else support
            features = forward(torch.cat([support, images]))
            prototypes = _prototypes(features[: len(support)], support_labels, n_way)
            loss = torch.nn.functional.cross_entropy(_logits(features[len(support) :], prototypes), support_labels)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        with torch.inference_mode():
            prototypes = _prototypes(forward(support), support_labels, n_way)
            return _logits(forward(query), prototypes)
    finally:
        network.load_state_dict(first_weights)
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(required[name])
            parameter.grad = None


def choose_learning_rate(
    accuracy_at: Callable[[float], float], rates: Sequence[float] = LEARNING_RATES
) -> tuple[float, dict[float, float]]:
    """The rate with the highest accuracy on validation tasks (the smaller one of equals), and what each reached."""
    reached = {rate: float(accuracy_at(rate)) for rate in sorted(rates)}
    return max(reached, key=lambda rate: (reached[rate], -rate)), reached


def augmented(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Images (n, 3, height, width) in [0, 1] with their own mirroring, shift, zoom, brightness, contrast and colour."""
    import torch

    n = len(images)

    def draw(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(n, generator=generator).to(images)

    mirror = torch.where(draw(0, 1) < 0.5, -1.0, 1.0)
    zoom = draw(0.75, 1.1)
    placed = torch.zeros(n, 2, 3).to(images)
    placed[:, 0, 0], placed[:, 1, 1] = mirror * zoom, zoom
    placed[:, 0, 2], placed[:, 1, 2] = draw(-0.2, 0.2), draw(-0.2, 0.2)
    grid = torch.nn.functional.affine_grid(placed, list(images.shape), align_corners=False)
    moved = torch.nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)

    def each(values: torch.Tensor) -> torch.Tensor:
        return values[:, None, None, None]

    grey = moved.mean(dim=1, keepdim=True)
    coloured = grey + (moved - grey) * each(draw(0.5, 1.5))
    level = coloured.mean(dim=(1, 2, 3), keepdim=True)
    return (level + (coloured - level) * each(draw(0.6, 1.4)) + each(draw(-0.2, 0.2))).clamp(0, 1)


def _prototypes(features: torch.Tensor, labels: torch.Tensor, n_way: int) -> torch.Tensor:
    """Mean features (W, D) of every label."""
    import torch

    member = torch.nn.functional.one_hot(labels, n_way).to(features)
    return (member.T @ features) / member.sum(dim=0)[:, None].clamp(min=1)


def _logits(features: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
    import torch

    unit = torch.nn.functional.normalize(features, dim=1)
    return COSINE_SCALE * unit @ torch.nn.functional.normalize(prototypes, dim=1).T
