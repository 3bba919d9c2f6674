"""N-means: as many clusters as a task has classes, found without labels; and how well they agree with the labels.

T tasks, W ways, V images of a task in a row, R starts. Everything follows from the inner products of the images: with a
few hundred images of a thousand dimensions that is several times quicker than from the features themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

N_STARTS, N_FINALISTS, HEAT, MOST_ROUNDS = 10, 3, 8, 100


def n_means(products: Tensor, mask: Tensor, ways: Tensor) -> Tensor:
    """Cluster 0..W-1 of every image (T, V): the best of ten starts (k-means++). After eight rounds the three that lead
    go on, until nothing changes.

    products (T, V, V) of the images, mask (T, V) which are there, ways (T, W) how many clusters a task has. Every task
    samples its starts with the same random numbers, so the answer depends on its images alone. A cluster that loses all
    its images stays where it was.
    """
    squares = products.diagonal(dim1=1, dim2=2)
    weights = _one_hot(_starts(products, squares, mask, ways.shape[1]), products)  # (T, R, W, V): means, as shares
    labels, inertia = _nearest(products, squares, mask, ways, weights)
    for n in range(1, MOST_ROUNDS):
        if n == HEAT:
            tasks, leading = torch.arange(len(labels))[:, None], inertia.argsort(dim=1, stable=True)[:, :N_FINALISTS]
            labels, weights, inertia = labels[tasks, leading], weights[tasks, leading], inertia[tasks, leading]
        weights = means(labels, mask, ways.shape[1], products.dtype, weights)
        before, (labels, inertia) = labels, _nearest(products, squares, mask, ways, weights)
        if bool((labels == before).all()):
            break
    best = inertia.argmin(1)[:, None, None].expand(-1, 1, labels.shape[2])
    return labels.gather(1, best).squeeze(1)


def means(labels: Tensor, mask: Tensor, n_ways: int, dtype: torch.dtype, otherwise: Tensor | None = None) -> Tensor:
    """The share (..., W, V) of every image in the mean of its cluster; an empty one keeps what it was, or zeros."""
    inside = (labels.unsqueeze(-2) == torch.arange(n_ways, device=labels.device)[:, None]) & _wide(mask, labels)
    count = inside.sum(-1, keepdim=True)
    share = inside.to(dtype) / count.clamp(min=1)
    return share if otherwise is None else torch.where(count > 0, share, otherwise)


def adjusted_rand(labels: Tensor, clusters: Tensor, mask: Tensor, n_ways: int) -> Tensor:
    """Adjusted Rand index (T,) of two labellings (T, V): 1 if they agree, 0 as by chance (Hubert & Arabie 1985)."""
    each = torch.arange(n_ways, device=labels.device)[:, None]
    first, second = (((x.unsqueeze(1) == each) & mask.unsqueeze(1)).double() for x in (labels, clusters))
    table = torch.bmm(first, second.transpose(1, 2))
    together, rows, columns = (_pairs(x) for x in (table.flatten(1), table.sum(2), table.sum(1)))
    chance = rows * columns / (mask.sum(1) * (mask.sum(1) - 1) / 2).clamp(min=1)
    room = (rows + columns) / 2 - chance
    return torch.where(room > 0, (together - chance) / torch.where(room > 0, room, 1.0), 1.0)


def _pairs(counts: Tensor) -> Tensor:
    """Pairs of images that share a cell (T,)."""
    return (counts * (counts - 1) / 2).sum(1)


def _starts(products: Tensor, squares: Tensor, mask: Tensor, n_ways: int) -> Tensor:
    """k-means++ (Arthur & Vassilvitskii 2007): places (T, R, W) of the images that the clusters start at.

    The first is any image, each next one an image with a probability that grows with its squared distance to the
    nearest start so far.
    """
    draws = torch.rand((n_ways, N_STARTS), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    draws = draws.to(products)
    n_tasks, n_images = mask.shape
    odds = mask.to(products.dtype).unsqueeze(1).expand(-1, N_STARTS, -1)
    nearest = torch.full((n_tasks, N_STARTS, n_images), torch.inf, dtype=products.dtype, device=products.device)
    starts = []
    for draw in draws:
        total = odds.cumsum(2)
        place = torch.searchsorted(total, draw[:, None] * total[..., -1:], right=True).clamp_(max=n_images - 1)
        starts.append(place)
        rows = products.gather(1, place.expand(-1, -1, n_images))
        distance = (squares.unsqueeze(1) + squares.gather(1, place.squeeze(2)).unsqueeze(2) - 2 * rows).clamp_(min=0)
        nearest = torch.minimum(nearest, distance)
        odds = nearest * mask.unsqueeze(1)
    return torch.cat(starts, 2)


def _one_hot(places: Tensor, like: Tensor) -> Tensor:
    """(T, R, W) -> (T, R, W, V)."""
    return torch.zeros((*places.shape, like.shape[1]), dtype=like.dtype, device=like.device).scatter_(
        3, places.unsqueeze(3), 1.0
    )


def _nearest(products: Tensor, squares: Tensor, mask: Tensor, ways: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest of the means to every image (T, R, V), and the sum of squared distances to them (T, R)."""
    n_tasks, _, n_ways, n_images = weights.shape
    along = torch.bmm(weights.view(n_tasks, -1, n_images), products).view_as(weights)
    own = (along * weights).sum(3, keepdim=True)
    # of means that only rounding tells apart, the first is the nearest
    rounding = 32 * torch.finfo(products.dtype).eps * squares.amax(1)[:, None, None, None]
    own += rounding * torch.arange(n_ways, device=weights.device)[:, None]
    if not bool(ways.all()):
        own.masked_fill_(~ways[:, None, :, None], torch.inf)
    least, labels = along.mul_(-2).add_(own).min(2)  # less the images' own squares, the same for all means
    return labels, ((least + squares.unsqueeze(1)) * mask.unsqueeze(1)).sum(2)


def _wide(mask: Tensor, labels: Tensor) -> Tensor:
    """mask (T, V), aligned with labels (T, V) or (T, R, V) with a dimension for the ways."""
    return mask[:, None, None] if labels.dim() == 3 else mask[:, None]
