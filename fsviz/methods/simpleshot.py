"""SimpleShot (Wang et al. 2019), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import DISTANCE, Method, choice, scale

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "simpleshot",
    "SimpleShot",
    "Wang et al. 2019",
    1,
    "inductive",
    "Nearest prototype on centred, unit-length features.",
    (
        choice(
            "centring",
            "Centring",
            "Subtract this mean first. Dataset: that of the training classes of the tasks' split, else of all images.",
            {"dataset": "Dataset", "support": "Support", "none": "None"},
        ),
        DISTANCE,
        scale(1.0),
        choice(
            "normalise",
            "Unit length",
            "Scale features to length 1 after centring. easyfsl does so only on request.",
            {"l2": "Yes", "none": "No"},
        ),
    ),
    presets={"paper": {}, "easyfsl": {"centring": "none", "normalise": "none", "distance": "cosine"}},
    wants_centre=True,
    shift_free={"centring": ("dataset", "support")},
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    centring: str = "dataset",
    distance: str = "euclidean",
    scale: float = 1.0,
    normalise: str = "l2",
    centre: Tensor | None = None,
) -> Tensor:
    """Nearest prototype after taking a mean off all features and scaling them to length one ("CL2N").

    centring   "dataset" takes off `centre` (D,), the mean of a wider set of images (the support's if none is
               given), "support" the mean of the task's own support, "none" nothing.
    normalise  length one then ("l2"), or as they are ("none").
    """
    import torch

    from fsviz.methods.geometry import (
        blank,
        cosine,
        in_a_row,
        mean_image,
        prototypes,
        squared_distances,
        unit,
        with_ways,
    )

    if centring == "none":
        middle = torch.zeros_like(support[:1, :1, 0])
    elif centring == "dataset" and centre is not None:
        middle = centre.to(support).view(1, 1, -1)
    else:
        middle = mean_image(*in_a_row(support, support_mask))
    support = blank(support, support_mask) - middle.unsqueeze(1)
    query = blank(query, query_mask) - middle
    if normalise == "l2":
        support, query = unit(support), unit(query)
    centres = prototypes(support, support_mask)
    scores = cosine(query, centres) if distance == "cosine" else -squared_distances(query, centres)
    return with_ways(scale * scores, support_mask.any(2))
