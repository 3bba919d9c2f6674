"""Multiclass (Tian et al. 2020): one classifier of all train classes; at test time its features, nearest prototype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.settings import Settings
from fsviz.training.declaration import Trainer

if TYPE_CHECKING:
    from torch import Tensor

    from fsviz.training.networks import Images, Learner

TRAINER = Trainer(
    "multiclass",
    "Multiclass",
    "Tian et al. 2020",
    0,
    "images",
    "nothing",
    "Learns to name all train classes at once; at test time the last layer goes, and the nearest prototype decides.",
)


def build(settings: Settings, n_classes: int, device: str = "cpu") -> Learner:
    from fsviz.training import networks

    return networks.build(settings, n_classes, device=device)


def step(
    learner: Learner, images: Images, batch: tuple[np.ndarray, np.ndarray], settings: Settings
) -> tuple[float, float]:
    """A step on the cross-entropy of rows (B,) with labels (B,) among all train classes; loss and accuracy."""
    import torch
    from torch.nn import functional as F

    from fsviz.training.networks import update

    rows, of = batch
    pixels = images(rows)
    labels = torch.from_numpy(of).to(pixels.device)
    logits = learner.model.train()(pixels)
    loss = F.cross_entropy(logits, labels)
    update(learner, loss)
    return float(loss.detach()), float((logits.detach().argmax(1) == labels).float().mean())


def scores(learner: Learner, images: Images, support: np.ndarray, query: np.ndarray, settings: Settings) -> Tensor:
    from fsviz.training import prototypes

    return prototypes.scores(learner, images, support, query)
