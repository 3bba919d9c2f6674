"""MAML (Finn et al. 2017): first weights from which a few gradient steps on a task lead far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.settings import Settings
from fsviz.training.declaration import INNER_LOOP, Trainer

if TYPE_CHECKING:
    from torch import Tensor

    from fsviz.training.networks import Images, Learner

TRAINER = Trainer(
    "maml",
    "MAML",
    "Finn et al. 2017",
    2,
    "tasks",
    "all",
    "Learns first weights from which a few gradient steps on a task's support, through the whole network, solve it.",
    INNER_LOOP,
)
ONLY = ""  # the weights that a task changes, by how their names start: all


def build(settings: Settings, n_classes: int, device: str = "cpu") -> Learner:
    from fsviz.training import networks

    return networks.build(settings, settings["n_way"], by_task=True, device=device)


def step(
    learner: Learner,
    images: Images,
    batch: tuple[np.ndarray, np.ndarray],
    settings: Settings,
    only: str = ONLY,
) -> tuple[float, float]:
    """A step on the loss of the queries after adapting on the support of their task."""
    from fsviz.training.inner_loop import meta_step

    return meta_step(learner, images, batch, only, settings)


def scores(
    learner: Learner,
    images: Images,
    support: np.ndarray,
    query: np.ndarray,
    settings: Settings,
    only: str = ONLY,
) -> Tensor:
    from fsviz.training.inner_loop import adapted_scores

    return adapted_scores(learner, images, support, query, only, settings)
