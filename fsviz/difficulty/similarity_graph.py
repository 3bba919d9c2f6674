"""The cosine graph of a task's images: its nearest neighbours, features diffused through it, its Laplacian.

T tasks, V images of a task in a row, D dimensions. After Bontonou et al. 2020, definitions 1, 2 and 8 and equations 7
to 9.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEIGHBOURS, ALPHA = 15, 0.75  # as published: neighbours per image, and the share of itself that an image keeps


def nearest_graph(cosines: Tensor, mask: Tensor, neighbours: int = NEIGHBOURS) -> Tensor:
    """Weights (T, V, V): in every row the cosines of the nearest images, equals of the last one too; zero elsewhere.

    No image is its own neighbour. Negative cosines count as zero: a graph has no negative edges.
    """
    n_images = cosines.shape[1]
    alone = torch.eye(n_images, dtype=torch.bool, device=cosines.device)
    away = alone if bool(mask.all()) else alone | ~(mask.unsqueeze(2) & mask.unsqueeze(1))
    weights = cosines.masked_fill(away, 0.0).clamp_(min=0)
    if neighbours >= n_images - 1:
        return weights
    least = weights.topk(neighbours, dim=2, sorted=False).values.amin(2, keepdim=True)
    return weights.masked_fill_(weights < least * (1 - 32 * torch.finfo(weights.dtype).eps), 0.0)


def diffusion(weights: Tensor) -> Tensor:
    """The matrix (T, V, V) that mixes every image with its neighbours: alpha I + D^-1/2 W D^-1/2, D the row sums."""
    degree = weights.sum(2)
    scale = torch.where(degree > 0, degree.clamp(min=torch.finfo(weights.dtype).tiny).rsqrt(), 0.0)
    mixing = weights * scale.unsqueeze(2) * scale.unsqueeze(1)
    mixing.diagonal(dim1=1, dim2=2).add_(ALPHA)
    return mixing


def laplacian_eigenvalues(weights: Tensor, mask: Tensor) -> Tensor:
    """Eigenvalues (T, V) of D - W, the lowest first, for the graph made symmetric as (W + W') / 2.

    The number of zeros among them is the number of parts of the graph. What is not there comes last.
    """
    weights = (weights + weights.transpose(1, 2)) / 2
    degree = weights.sum(2)
    # no eigenvalue is larger than twice the largest degree
    degree = torch.where(mask, degree, 2 * degree.amax(1, keepdim=True) + 1)
    return torch.linalg.eigvalsh(torch.diag_embed(degree) - weights).clamp_(min=0)
