"""Finetune (Arnold & Sha 2021, table 1): the backbone of Multiclass, adapted by a few gradient steps on a test task.

At every step the support images are classified by the nearest prototype of the support itself, and all weights of the
backbone follow the gradient of the cross-entropy; then the nearest prototype decides. Batch norms keep their running
statistics, so that each query is answered alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional as F

from fsviz.training.inner_loop import Weights, adapt
from fsviz.training.networks import Images, Learner, labels_of
from fsviz.training.prototypes import nearest

RATES = (1e-5, 1e-4, 1e-3, 1e-2)  # tried on validation tasks
_AT_ONCE = 8  # tasks


@torch.no_grad()
def scores(
    learner: Learner, images: Images, support: np.ndarray, query: np.ndarray, steps: int = 5, lr: float = 1e-3
) -> Tensor:
    """Scores (T, W, W Q) of the queries of test tasks, each after finetuning on its support."""
    backbone = learner.model.eval().backbone
    weights = {name: w.detach() for name, w in backbone.named_parameters()}
    _, n_way, n_shot = support.shape
    labels = labels_of(n_way, n_shot, next(iter(weights.values())).device)

    def features(of: Weights, pixels: Tensor) -> Tensor:
        return functional_call(backbone, of, (pixels,))

    def of_task(one_support: Tensor, one_query: Tensor) -> Tensor:
        def loss(of: Weights) -> Tensor:
            embedded = features(of, one_support)
            return F.cross_entropy(nearest(embedded.view(1, n_way, n_shot, -1), embedded.unsqueeze(0))[0], labels)

        after = adapt(loss, weights, steps, lr, first_order=True)
        embedded = features(after, one_support).view(1, n_way, n_shot, -1)
        return nearest(embedded, features(after, one_query).unsqueeze(0))[0]

    parts = []
    for start in range(0, len(support), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        pixels = (images(rows[some].reshape(len(rows[some]), -1)) for rows in (support, query))
        parts.append(vmap(of_task)(*pixels))
    return torch.cat(parts).transpose(1, 2)
