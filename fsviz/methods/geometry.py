"""Prototypes, similarities and probabilities of a batch of tasks (shapes as in fsviz.methods)."""

from __future__ import annotations

import torch
from torch import Tensor

_TAIL, _ROOM = 60.0, 20.0


def blank(features: Tensor, mask: Tensor) -> Tensor:
    """The features with zeros at padded places, so that whatever stood there cannot matter."""
    return features if bool(mask.all()) else features.masked_fill(~mask.unsqueeze(-1), 0.0)


def unit(features: Tensor) -> Tensor:
    """Features of length one; zero vectors stay zero."""
    return torch.nn.functional.normalize(features, dim=-1)


def prototypes(support: Tensor, support_mask: Tensor) -> Tensor:
    """Mean support features of every class (T, W, D); zeros for a way without support."""
    if bool(support_mask.all()):
        return support.mean(2)
    count = support_mask.sum(2, keepdim=True).clamp(min=1)
    return blank(support, support_mask).sum(2) / count


def flat(support: Tensor, support_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All support images of a task in one row: features (T, N, D), mask (T, N), one-hot labels (T, N, W); N = W S."""
    n_tasks, n_way, n_shot, dims = support.shape
    mask = support_mask.reshape(n_tasks, n_way * n_shot)
    eye = torch.eye(n_way, dtype=support.dtype, device=support.device)
    labels = eye.repeat_interleave(n_shot, 0).expand(n_tasks, -1, -1)
    if not bool(mask.all()):
        labels = labels * mask.unsqueeze(-1)
    return blank(support, support_mask).reshape(n_tasks, n_way * n_shot, dims), mask, labels


def cosine(features: Tensor, anchors: Tensor) -> Tensor:
    """Cosine similarity of features (T, M, D) and anchors (T, W, D): (T, M, W)."""
    return torch.bmm(unit(features), unit(anchors).transpose(1, 2))


def squared_distances(features: Tensor, anchors: Tensor) -> Tensor:
    """Squared Euclidean distances of features (T, M, D) and anchors (T, W, D): (T, M, W), never below zero."""
    lengths = features.square().sum(-1).unsqueeze(2) + anchors.square().sum(-1).unsqueeze(1)
    return torch.baddbmm(lengths, features, anchors.transpose(1, 2), alpha=-2).clamp_(min=0)


def softmax(scores: Tensor, ways: Tensor) -> Tensor:
    """Softmax over the ways a task has (T, W); zero elsewhere."""
    if not bool(ways.all()):
        scores = scores.masked_fill(~ways.unsqueeze(1), -torch.inf)
    return scores.softmax(-1)


def probabilities(scores: Tensor, ways: Tensor, query_mask: Tensor) -> Tensor:
    """Softmax over the ways of a task, zero rows for padded queries, and no ties among the very unlikely.

    float32 turns everything below exp(-103) into 0, and the order of the classes (top-5 among 100) is lost.
    Log-odds z below -60 are squeezed into (-80, -60], in order; probabilities above 1e-26 are as they were.
    """
    if not bool(ways.all()):
        scores = scores.masked_fill(~ways.unsqueeze(1), -torch.inf)
    z = scores - scores.amax(-1, keepdim=True)
    if bool((z < -_TAIL).any()):
        squeezed = -_TAIL - _ROOM + _ROOM**2 / (_ROOM - _TAIL - z)
        z = torch.where(z < -_TAIL, squeezed, z).masked_fill(~ways.unsqueeze(1), -torch.inf)
    return blank(z.softmax(-1), query_mask)
