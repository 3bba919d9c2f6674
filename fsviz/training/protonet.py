"""ProtoNet (Snell et al. 2017): learns from tasks to bring images of a class near their prototype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.settings import Settings
from fsviz.training.declaration import Trainer

if TYPE_CHECKING:
    from torch import Tensor

    from fsviz.training.networks import Images, Learner

TRAINER = Trainer(
    "protonet",
    "ProtoNet",
    "Snell et al. 2017",
    1,
    "tasks",
    "nothing",
    "Learns features in which queries are near the mean support image of their class; the nearest such mean decides.",
)


def build(settings: Settings, n_classes: int, device: str = "cpu") -> Learner:
    from fsviz.training import networks

    return networks.build(settings, device=device)


def step(
    learner: Learner, images: Images, batch: tuple[np.ndarray, np.ndarray], settings: Settings
) -> tuple[float, float]:
    """A step on the cross-entropy of the queries' distances to prototypes, all tasks of the batch in one pass."""
    import torch
    from torch.nn import functional as F

    from fsviz.training.networks import labels_of, update
    from fsviz.training.prototypes import nearest

    support, query = batch
    n_tasks, n_way, n_query = query.shape
    features = learner.model.train()(images(np.concatenate([support.reshape(-1), query.reshape(-1)])))
    of_support, of_query = torch.split(features, [support.size, query.size])
    logits = nearest(of_support.view(*support.shape, -1), of_query.view(n_tasks, n_way * n_query, -1))
    labels = labels_of(n_way, n_query, logits.device)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.repeat(n_tasks))
    update(learner, loss)
    return float(loss.detach()), float((logits.detach().argmax(2) == labels).float().mean())


def scores(learner: Learner, images: Images, support: np.ndarray, query: np.ndarray, settings: Settings) -> Tensor:
    from fsviz.training import prototypes

    return prototypes.scores(learner, images, support, query)
