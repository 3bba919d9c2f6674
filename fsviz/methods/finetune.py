"""Finetune / Baseline (Chen et al. 2019), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import STEPS_IN_UNITS, Method, choice, lr, scale, steps

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "finetune",
    "Finetune",
    "Chen et al. 2019",
    4,
    "inductive",
    "Trains a small classifier on the support features for a few steps, the backbone staying as it is.",
    (
        choice(
            "head",
            "Classifier",
            "Cosines with trained prototypes, or a linear layer from zero.",
            {"cosine": "Cosine", "linear": "Linear"},
        ),
        steps(10),
        lr(1e-3),
        scale(1.0),
    ),
    presets={"paper": {}, "easyfsl": {"steps": 200, "lr": 1e-4}},
    scale_free=None,
    units=STEPS_IN_UNITS,
    family="Fine-tuning",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    head: str = "cosine",
    steps: int = 10,
    lr: float = 1e-3,
    scale: float = 1.0,
) -> Tensor:
    """Trains a head on the support by Adam, backbone frozen, and applies it to the queries.

    head  "cosine": scores are cosines with one vector per class, starting at the prototypes (Bennequin et al. 2022);
          "linear": a linear layer with bias, starting at zero.
    """
    import torch

    from fsviz.methods.descent import adam, cosine_head, cross_entropy, linear_head, with_bias
    from fsviz.methods.geometry import blank, cosine, in_a_row, prototypes, with_ways

    ways = support_mask.any(2)
    images, _ = in_a_row(support, support_mask)
    query = blank(query, query_mask)
    fit = cross_entropy(support_mask, images.dtype)
    if head == "linear":
        images, query = with_bias(images), with_bias(query)
        start = images.new_zeros(len(images), support.shape[1], images.shape[2])
        weights = adam(start, linear_head(images, scale, ways, fit), steps, lr)
        return with_ways(scale * torch.bmm(weights, query.transpose(1, 2)), ways)
    weights = adam(prototypes(support, support_mask), cosine_head(images, scale, ways, fit), steps, lr)
    return with_ways(scale * cosine(query, weights), ways)
