"""PT-MAP, power transform and optimal transport (Hu et al. 2021), transductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, choice, lr, number, steps

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "pt_map",
    "PT-MAP",
    "Hu et al. 2021",
    6,
    "transductive",
    "Optimal transport of queries to classes, alternating with prototype updates.",
    (
        steps(20),
        lr(0.2),
        number("sharpness", "Assignment sharpness", 10.0, "Larger assigns each query to fewer classes.", 0.1, 100.0),
        number("power", "Power", 0.5, "Exponent that evens out the features before use.", 0.1, 1.0),
        choice(
            "normalise",
            "Unit length",
            "When to scale features to length 1: after the power transform, before it, or never. easyfsl does so only "
            "on request, and then returns no numbers for features much longer than 1.",
            {"after": "After", "before": "Before", "none": "Never"},
        ),
    ),
    presets={"paper": {}, "easyfsl": {"steps": 10, "normalise": "none"}},
    pairwise=True,
    scale_free={"normalise": ("before",)},
    units="a millionth is added before the power is taken",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    steps: int = 20,
    lr: float = 0.2,
    sharpness: float = 10.0,
    power: float = 0.5,
    normalise: str = "after",
) -> Tensor:
    """Assigns queries to prototypes by optimal transport, every class taking an equal share, and moves the prototypes.

    normalise  length one "after" the power transform (the paper), "before" it, or "none".

    Prototypes are weighted means of the task's images, so only the K x K products of those images are needed: with
    weights C (T, W, K) and products G (T, K, K), the squared distance of prototype w and image k is
    G_kk - 2 (C G)_wk + (C G C')_ww. An update of the prototypes is one of C, and of C G alike.
    """
    import torch

    from fsviz.methods.geometry import blank, in_a_row, one_hot, unit, with_ways
    from fsviz.methods.transport import TINY, transport

    ways, labels = support_mask.any(2), one_hot(support_mask, support.dtype)
    images, there = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = torch.cat([images, query], 1)
    there = torch.cat([there, query_mask], 1)
    if normalise == "before":
        images = unit(blank(images, there))
    images = (images.relu() + 1e-6).pow(power)
    if normalise == "after":
        images = unit(images)
    images = blank(images, there)

    products = torch.bmm(images, images.transpose(1, 2))
    lengths = products.diagonal(dim1=1, dim2=2)[:, None, n_support:]
    shares = torch.nn.functional.pad(labels / labels.sum(-1, keepdim=True).clamp(min=1), (0, query.shape[1]))
    mixed = torch.bmm(shares, products)
    for _ in range(steps):
        plan, _ = transport(_cost(lengths, shares, mixed, n_support) * sharpness, ways, query_mask)
        assigned = torch.cat([labels, plan], -1)
        assigned = assigned / assigned.sum(-1, keepdim=True).clamp(min=TINY)
        shares = shares.lerp(assigned, lr)
        mixed = mixed.lerp(torch.bmm(assigned, products), lr)
    cost = _cost(lengths, shares, mixed, n_support) * sharpness
    _, appeal = transport(cost, ways, query_mask)
    return with_ways(appeal.unsqueeze(-1) - cost, ways)


def _cost(lengths: Tensor, shares: Tensor, mixed: Tensor, n_support: int) -> Tensor:
    """Squared distances (T, W, M) of the prototypes to the queries."""
    own = (shares * mixed).sum(-1, keepdim=True)
    return (lengths - 2 * mixed[..., n_support:] + own).clamp_(min=0)
