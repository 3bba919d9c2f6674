"""LaplacianShot (Ziko et al. 2020), transductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, choice, integer, number, steps

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "laplacian_shot",
    "LaplacianShot",
    "Ziko et al. 2020",
    8,
    "transductive",
    "Nearest prototype, with similar queries pulled to the same class.",
    (
        integer(
            "neighbours",
            "Neighbours",
            2,
            "Similar queries that influence each query. Paper and easyfsl: 3, counting the query itself.",
            1,
            50,
        ),
        steps(20),
        number("smoothness", "Smoothness", 0.7, "Influence of these queries.", 0.0, 10.0),
        choice(
            "normalise",
            "Unit length",
            "Scale features to length 1.",
            {"l2": "Yes", "none": "No"},
        ),
    ),
    presets={"paper": {}, "easyfsl": {"normalise": "none"}},
    pairwise=True,
    scale_free={"normalise": ("l2",)},
    units="squared distances are weighed against the agreement of queries",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    neighbours: int = 2,
    steps: int = 20,
    smoothness: float = 0.7,
    normalise: str = "l2",
) -> Tensor:
    """Nearest rectified prototype, smoothed so that queries agree with their nearest queries.

    With a the squared distances to the prototypes, A the graph of each query's nearest queries and Y the
    assignments: Y <- softmax(-a + smoothness A Y), until the bound of the paper changes by less than a millionth.
    """
    import torch

    from fsviz.methods.bd_cspn import rectified_prototypes
    from fsviz.methods.geometry import blank, softmax, squared_distances, unit, with_ways

    support, query = blank(support, support_mask), blank(query, query_mask)
    if normalise == "l2":
        support, query = unit(support), unit(query)
    ways = support_mask.any(2)
    apart = squared_distances(query, rectified_prototypes(support, support_mask, query, query_mask))
    graph = _nearest(query, query_mask, neighbours).transpose(1, 2)

    there = query_mask.unsqueeze(1)
    scores = -apart
    assigned = softmax(scores, ways) * there
    agreement = torch.bmm(assigned, graph)
    bound = torch.full((len(query), 1, 1), torch.inf, device=query.device)
    active = torch.ones_like(bound, dtype=torch.bool)
    for step in range(steps):
        scores = torch.where(active, smoothness * agreement - apart, scores)
        assigned = softmax(scores, ways) * there
        agreement = torch.bmm(assigned, graph)
        terms = assigned * ((assigned + 1e-12).log() + apart - smoothness * agreement)
        new = terms.sum((1, 2), keepdim=True)
        if step > 1:
            active = active & ((new - bound).abs() > 1e-6 * bound.abs())
            if not bool(active.any()):
                break
        bound = new
    return with_ways(scores, ways)


def _nearest(query: Tensor, query_mask: Tensor, k: int) -> Tensor:
    """Graph (T, M, M): 1 at [i, j] where j is one of the k queries nearest to i, itself and padding left out."""
    import torch

    from fsviz.methods.geometry import blank, squared_distances

    apart = squared_distances(query, query)
    apart.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    apart = apart.masked_fill(~query_mask.unsqueeze(1), torch.inf)
    near = apart.topk(min(k, query.shape[1]), dim=2, largest=False)
    graph = torch.zeros_like(apart).scatter_(2, near.indices, near.values.isfinite().to(apart))
    return blank(graph, query_mask)
