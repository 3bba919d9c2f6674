"""ANIL (Raghu et al. 2020): MAML that adapts the last layer alone; the features are shared by all tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fsviz.training.declaration import ADAPTING, Trainer

if TYPE_CHECKING:
    from torch import Tensor

    from fsviz.training.networks import Images, Learner

TRAINER = Trainer(
    "anil",
    "ANIL",
    "Raghu et al. 2020",
    3,
    "tasks",
    "head",
    "As MAML, but a task adapts the last layer alone: the features stay as they are.",
    ADAPTING,
)
ONLY = "head."  # the weights that a task changes, by how their names start


def build(settings: Mapping[str, Any], n_classes: int, device: str = "cpu") -> Learner:
    from fsviz.training import networks

    return networks.build(settings, settings["n_way"], by_task=True, device=device)


def step(
    learner: Learner, images: Images, batch: tuple[np.ndarray, np.ndarray], settings: Mapping[str, Any]
) -> tuple[float, float]:
    """A step on the loss of the queries after adapting on the support of their task."""
    from fsviz.training.adapting import meta_step

    return meta_step(learner, images, batch, ONLY, settings)


def scores(
    learner: Learner, images: Images, support: np.ndarray, query: np.ndarray, settings: Mapping[str, Any]
) -> Tensor:
    from fsviz.training.adapting import adapted_scores

    return adapted_scores(learner, images, support, query, ONLY, settings)
