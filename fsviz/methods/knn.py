"""Nearest neighbours (Cover & Hart 1967), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import DISTANCE, EUCLIDEAN, Method, integer

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "knn",
    "Nearest neighbours",
    "Cover & Hart 1967",
    10,
    "inductive",
    "Majority vote of the k nearest support images.",
    (integer("k", "Neighbours", 1, "Support images that vote.", 1, 100), DISTANCE),
    pairwise=True,
    shift_free=EUCLIDEAN,
    family="Fine-tuning",
)

TIE_BREAK = 0.01  # of a vote, for the class whose nearest image is nearest of all; less for the others
NEAREST = 1e-6  # of the distance to the farthest class: nearer images all count as this near


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    k: int = 1,
    distance: str = "euclidean",
) -> Tensor:
    """Logarithm of the votes of the k nearest support images (all of them if there are fewer).

    Images at the same distance share the votes that are left for them. Equal votes are settled in favour of the class
    that holds the nearer image: each class gets a further hundredth of a vote times (distance of the nearest image of
    all / distance of the class's nearest image), in float64, where that hundredth loses no digits.
    """
    import torch

    from fsviz.methods.geometry import blank, cosine, in_a_row, squared_distances, with_ways

    n_tasks, n_way, n_shot, _ = support.shape
    query = blank(query, query_mask)
    images, there = in_a_row(support, support_mask)
    if distance == "cosine":
        apart = (1 - cosine(query, images)).clamp_(min=0)
    else:
        apart = squared_distances(query, images).sqrt_()
    apart = apart.masked_fill(~there.unsqueeze(-1), torch.inf)
    k = min(k, n_way * n_shot)
    last = apart.topk(k, dim=1, largest=False).values[:, -1:]  # infinite where fewer images than k are there
    inside, level = apart < last, (apart == last) & apart.isfinite()
    share_of_ties = (k - inside.sum(1, keepdim=True)) / level.sum(1, keepdim=True).clamp(min=1)
    votes = (inside + level * share_of_ties).view(n_tasks, n_way, n_shot, -1).sum(2).cpu().double()

    closest = apart.view(n_tasks, n_way, n_shot, -1).amin(2).cpu().double()
    farthest = closest.masked_fill(closest.isinf(), 0.0).amax(1, keepdim=True)
    closest = torch.maximum(closest, NEAREST * farthest)
    votes += TIE_BREAK * (closest.amin(1, keepdim=True) / closest).nan_to_num(nan=1.0)  # 0 / 0: all are at no distance
    return with_ways(votes.log(), support_mask.any(2).cpu())
