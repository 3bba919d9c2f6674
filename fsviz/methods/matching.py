"""Matching networks (Vinyals et al. 2016) without their trained context encoders, inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, choice, scale

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "matching",
    "MatchingNet",
    "Vinyals et al. 2016",
    11,
    "inductive",
    "Cosine-weighted vote of the support images.",
    (
        scale(1.0),
        choice(
            "normalise",
            "Unit length",
            "Whether queries are scaled to length one as well as support images, so that only angles count. easyfsl "
            "keeps their length; the context encoders that it adds are of use only once they are trained.",
            {"both": "Support and queries", "support": "Support alone"},
        ),
    ),
    presets={"paper": {}, "easyfsl": {"normalise": "support"}},
    pairwise=True,
    scale_free={"normalise": ("both",)},
    units="the longer a query, the fewer support images decide",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    scale: float = 1.0,
    normalise: str = "both",
) -> Tensor:
    """Each class gets the attention paid to its support images: softmax of the cosines with all of them, summed.

    normalise  with "support" the cosines are multiplied by the length of the query: long ones pay sharper attention.
    """
    import torch

    from fsviz.methods.geometry import blank, cosine, in_a_row, unit, with_ways

    n_tasks, n_way, n_shot, _ = support.shape
    images, there = in_a_row(support, support_mask)
    query = blank(query, query_mask)
    likeness = cosine(query, images) if normalise == "both" else torch.bmm(unit(images), query.transpose(1, 2))
    likeness = scale * likeness
    likeness = likeness.masked_fill(~there.unsqueeze(-1), -torch.inf)
    attention = likeness.view(n_tasks, n_way, n_shot, -1).logsumexp(2)  # its logarithm
    return with_ways(attention, support_mask.any(2))
