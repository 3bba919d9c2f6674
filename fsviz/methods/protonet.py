"""Prototypical networks (Snell et al. 2017), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import DISTANCE, EUCLIDEAN, Method, scale

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "protonet",
    "ProtoNet",
    "Snell et al. 2017",
    0,
    "inductive",
    "Averages the support features of each class into a prototype and picks the nearest prototype.",
    (DISTANCE, scale(1.0)),
    presets={"paper": {}, "easyfsl": {}},
    shift_free=EUCLIDEAN,
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    distance: str = "euclidean",
    scale: float = 1.0,
) -> Tensor:
    """Minus the squared distance (or the cosine) from a query to the mean support of every class."""
    import torch

    from fsviz.methods.geometry import blank, cosine, prototypes, with_ways

    query = blank(query, query_mask)
    centres = prototypes(support, support_mask)
    if distance == "cosine":
        scores = cosine(query, centres)
    else:
        # -|q - p|^2 without |q|^2, which is the same for all classes: order and softmax stay
        lengths = centres.square().sum(-1, keepdim=True)
        scores = torch.baddbmm(lengths, centres, query.transpose(1, 2), beta=-1, alpha=2)
    return with_ways(scale * scores, support_mask.any(2))
