"""Prototypes, similarities, scores and probabilities of a batch of tasks, in float32 or float64.

T tasks, W ways, S shots, N = W S support images of a task, M queries of a task, D dimensions. Scores are (T, W, M):
with the images innermost, the products of a few ways with many images run about twice as fast as the other way round.
"""

from __future__ import annotations

import torch
from torch import Tensor

_TAIL, _ROOM = 60.0, 20.0
_SMALLEST = {torch.float32: 1e-12, torch.float64: 1e-100}  # a shorter vector counts as zero; its square is in range
# Shares of the squared lengths: below the first, |w|^2 + |x|^2 - 2 w x has too few digits left for a distance, and the
# differences are squared instead; what rounding alone makes of a difference is below the second.
_NEAR = {torch.float32: 1e-3, torch.float64: 1e-8}
_ROUNDING = {torch.float32: 1e-12, torch.float64: 1e-28}
_BLOCK = 2**22  # numbers of differences in memory at once


def smallest(features: Tensor) -> float:
    """The length below which a vector of this precision counts as zero."""
    return _SMALLEST[features.dtype]


def blank(features: Tensor, mask: Tensor) -> Tensor:
    """The features (..., D) with zeros where mask (...) is False, so that whatever stood there cannot matter."""
    return features if bool(mask.all()) else features.masked_fill(~mask.unsqueeze(-1), 0.0)


def unit(features: Tensor) -> Tensor:
    """Features of length one; zero vectors stay zero."""
    return torch.nn.functional.normalize(features, dim=-1, eps=smallest(features))


def prototypes(support: Tensor, support_mask: Tensor) -> Tensor:
    """Mean support features of every class (T, W, D); zeros for a way without support."""
    if bool(support_mask.all()):
        return support.mean(2)
    return blank(support, support_mask).sum(2) / support_mask.sum(2, keepdim=True).clamp(min=1)


def in_a_row(support: Tensor, support_mask: Tensor) -> tuple[Tensor, Tensor]:
    """All support images of a task in one row: features (T, N, D), zeros where padded, and mask (T, N)."""
    n_tasks, n_way, n_shot, dims = support.shape
    clean = blank(support, support_mask)
    return clean.reshape(n_tasks, n_way * n_shot, dims), support_mask.reshape(n_tasks, n_way * n_shot)


def one_hot(support_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Labels of the support images in a row (T, W, N): 1 if an image is of a way, 0 elsewhere and where padded."""
    n_tasks, n_way, n_shot = support_mask.shape
    eye = torch.eye(n_way, dtype=dtype, device=support_mask.device)
    return (eye[:, :, None] * support_mask[:, None]).reshape(n_tasks, n_way, n_way * n_shot)


def equal_shares(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights (T, 1, M) that average over the images that are there: 1 / their number, 0 where padded."""
    return (mask.to(dtype) / mask.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1)


def mean_image(features: Tensor, mask: Tensor) -> Tensor:
    """Mean (T, 1, D) of the images (T, M, D) that are there; padded places must hold zeros."""
    return torch.bmm(equal_shares(mask, features.dtype), features)


def lengths(features: Tensor) -> Tensor:
    """Euclidean lengths (T, 1, M) of features (T, M, D), never quite zero."""
    return torch.linalg.vector_norm(features, dim=-1).clamp_(min=smallest(features)).unsqueeze(1)


def cosine(features: Tensor, anchors: Tensor) -> Tensor:
    """Cosine similarity (T, W, M) of anchors (T, W, D) and features (T, M, D)."""
    return torch.bmm(unit(anchors), features.transpose(1, 2)).div_(lengths(features))


def squared_distances(features: Tensor, anchors: Tensor, squares: Tensor | None = None) -> Tensor:
    """Squared Euclidean distances (T, W, M) of anchors (T, W, D) and features (T, M, D).

    squares (T, 1, M) are the features' squared lengths, where already known. Distances that are small compared with the
    lengths are summed from differences, so that none of their digits are lost. What rounding alone can give is zero.
    """
    squares = lengths(features).square() if squares is None else squares
    squares = squares + lengths(anchors).square().transpose(1, 2)
    distances = torch.baddbmm(squares, anchors, features.transpose(1, 2), alpha=-2)
    near = distances <= _NEAR[features.dtype] * squares
    if bool(near.any()):
        exact = _summed_distances(features, anchors, near)
        distances[near] = exact.masked_fill_(exact <= _ROUNDING[features.dtype] * squares[near], 0.0)
    return distances


def _summed_distances(features: Tensor, anchors: Tensor, pairs: Tensor) -> Tensor:
    """Squared distances (K,) of the pairs (T, W, M) that are True, as sums of squared differences."""
    task, way, image = pairs.nonzero(as_tuple=True)
    block = max(1, _BLOCK // features.shape[-1])
    parts = zip(task.split(block), way.split(block), image.split(block), strict=True)
    return torch.cat([(anchors[t, w] - features[t, m]).square_().sum(-1) for t, w, m in parts])


def with_ways(scores: Tensor, ways: Tensor) -> Tensor:
    """The scores (T, W, M) with minus infinity for the ways that a task (T, W) does not have."""
    return scores if bool(ways.all()) else scores.masked_fill(~ways.unsqueeze(-1), -torch.inf)


def softmax(scores: Tensor, ways: Tensor) -> Tensor:
    """Softmax over the ways that a task has (T, W), of scores (T, W, M); zero for the other ways."""
    return with_ways(scores, ways).softmax(1)


def probabilities(scores: Tensor, ways: Tensor) -> Tensor:
    """Scores (T, W, M) -> probabilities (T, W, M) in float32: softmax over a task's ways (T, W), zero for the others.

    float32 turns everything below exp(-103) into 0, and the order of the classes (top-5 among 100) would be lost.
    Log-odds z below -60 are squeezed into (-80, -60], in order; probabilities above 1e-26 stay as they are.
    """
    scores = with_ways(scores, ways)
    z = scores - scores.amax(1, keepdim=True)
    low = z < -_TAIL
    if bool(low.any()):
        z = with_ways(torch.where(low, -_TAIL - _ROOM + _ROOM**2 / (_ROOM - _TAIL - z), z), ways)
    return z.float().softmax(1)
