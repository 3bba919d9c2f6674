"""Nearest prototype on features: the classifier of ProtoNet, and of Multiclass at test time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fsviz.training.networks import Images, Learner, in_batches


def nearest(support: Tensor, query: Tensor) -> Tensor:
    """Minus the squared distance of every query (T, M, D) to every class's mean support (T, W, S, D): (T, M, W)."""
    means = support.mean(2)
    squares = query.square().sum(2, keepdim=True) + means.square().sum(2).unsqueeze(1)
    return 2 * query @ means.transpose(1, 2) - squares


@torch.no_grad()
def scores(learner: Learner, images: Images, support: np.ndarray, query: np.ndarray) -> Tensor:
    """Scores (T, W, W Q) by the nearest prototype; the features of every image are computed once."""
    learner.model.eval()
    rows, place = np.unique(np.concatenate([support.reshape(-1), query.reshape(-1)]), return_inverse=True)
    features = in_batches(learner.model.backbone, images, rows)
    at = torch.from_numpy(place).to(features.device)
    of_support = features[at[: support.size]].view(*support.shape, -1)
    of_query = features[at[support.size :]].view(len(query), -1, features.shape[1])
    return nearest(of_support, of_query).transpose(1, 2)
