"""Transductive information maximisation, TIM (Boudiaf et al. 2020), transductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import DISTANCE, EUCLIDEAN, STEPS_IN_UNITS, Method, lr, number, scale, steps

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "tim",
    "TIM",
    "Boudiaf et al. 2020",
    5,
    "transductive",
    "Fits prototypes to the support while keeping query predictions confident and balanced.",
    (
        DISTANCE,
        steps(100),
        lr(1e-3),
        scale(1.0),
        number(
            "cross_entropy_weight", "Support loss weight", 1.0, "Weight of the cross-entropy on the support.", 0.0, 10.0
        ),
        number(
            "marginal_weight", "Class balance weight", 1.0, "Weight of the marginal entropy of the queries.", 0.0, 10.0
        ),
        number(
            "conditional_weight",
            "Query confidence weight",
            0.1,
            "Weight of the conditional entropy of the queries.",
            0.0,
            10.0,
        ),
    ),
    presets={"paper": {}, "easyfsl": {"distance": "cosine", "scale": 10.0, "steps": 50, "lr": 1e-4}},
    scale_free=None,
    shift_free=EUCLIDEAN,
    units=STEPS_IN_UNITS,
    family="Fine-tuning",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    distance: str = "euclidean",
    steps: int = 100,
    lr: float = 1e-3,
    scale: float = 1.0,
    cross_entropy_weight: float = 1.0,
    marginal_weight: float = 1.0,
    conditional_weight: float = 0.1,
) -> Tensor:
    """Moves the prototypes by Adam on

    a CE(support) - b H(mean prediction of the queries) + c mean H(prediction of a query),

    with the weights a, b, c in the order of the arguments and H the entropy: fit the support, use all classes,
    and be sure of every query. Scores are minus the Euclidean distances to the prototypes (Bennequin et al. 2022),
    or their cosines.
    """
    import torch

    from fsviz.methods.descent import adam, cosine_head, cross_entropy, euclidean_head
    from fsviz.methods.geometry import blank, cosine, equal_shares, in_a_row, prototypes, squared_distances, with_ways

    ways = support_mask.any(2)
    images, _ = in_a_row(support, support_mask)
    n_support = images.shape[1]
    images = torch.cat([images, blank(query, query_mask)], 1)
    fit = cross_entropy(support_mask, images.dtype)
    share = equal_shares(query_mask, images.dtype)

    def slope(probability: Tensor) -> Tensor:
        guess = probability[..., n_support:]
        # gradient for the probabilities, up to a constant per query, which softmax's own gradient removes
        pull = (guess + 1e-12).log_().mul_(-conditional_weight)
        if marginal_weight:
            marginal = (guess * share).sum(-1, keepdim=True)
            pull.add_(marginal_weight * marginal.clamp(min=1e-30).log())
        pull = pull.sub_((guess * pull).sum(1, keepdim=True)).mul_(guess).mul_(share)
        return torch.cat([cross_entropy_weight * fit(probability[..., :n_support]), pull], -1)

    head = cosine_head if distance == "cosine" else euclidean_head
    centres = adam(prototypes(support, support_mask), head(images, scale, ways, slope), steps, lr)
    query = images[:, n_support:]
    if distance == "cosine":
        return with_ways(scale * cosine(query, centres), ways)
    return with_ways(-scale * squared_distances(query, centres).sqrt_(), ways)
