"""The loss that searches for support sets raise or lower: cross-entropy of the queries under prototypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.difficulty.search_options import SearchOptions

if TYPE_CHECKING:
    import torch

COSINE_SCALE = 10.0
SPREAD = 3.0  # mean scaled squared distance between queries and prototypes, see natural_scale


def _least(values: torch.Tensor) -> float:
    """The length below which a vector counts as zero: its square is the smallest number of this precision."""
    import torch

    return torch.finfo(values.dtype).tiny ** 0.5


def natural_scale(
    prototypes: torch.Tensor, way_mask: torch.Tensor, query: torch.Tensor, query_mask: torch.Tensor
) -> torch.Tensor:
    """Factor (T, 1, 1) that makes the mean squared distance of a task's queries to its prototypes SPREAD.

    Backbones differ in the size of their features by orders of magnitude, and with large distances the softmax sees
    one nearly misclassified query and nothing else: the gradient then no longer finds what hurts the task. On
    clustered and on real features, hard sets are hardest and easy sets easiest for spreads between 1 and 5.
    """
    import torch

    pairs = (query_mask[:, :, None] & way_mask[:, None, :]).to(query)
    squared = (
        (query**2).sum(dim=2)[:, :, None]
        - 2 * query @ prototypes.transpose(1, 2)
        + (prototypes**2).sum(dim=2)[:, None, :]
    ).clamp(min=0)
    mean = (squared * pairs).sum(dim=(1, 2)) / pairs.sum(dim=(1, 2)).clamp(min=1)
    rounding = torch.finfo(query.dtype).eps * (query**2).sum(dim=2).amax(dim=1)  # distances of equal images
    return (SPREAD / torch.maximum(mean, rounding).clamp(min=_least(query)))[:, None, None]


def resolve_scale(
    options: SearchOptions,
    prototypes: torch.Tensor,
    way_mask: torch.Tensor,
    query: torch.Tensor,
    query_mask: torch.Tensor,
) -> torch.Tensor | float:
    """The factor of the loss: that of the options, or the default of the loss."""
    if options.scale is not None:
        return float(options.scale)
    return COSINE_SCALE if options.loss == "cosine" else natural_scale(prototypes, way_mask, query, query_mask)


def normalised(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors (..., D) of length one."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=_least(vectors))


def logits_of(dots: torch.Tensor, square: torch.Tensor, loss: str, scale: torch.Tensor | float) -> torch.Tensor:
    """Logits of prototypes from their inner products with the queries and their squared lengths.

    For the loss "cosine" the queries must be normalised.
    """
    import torch

    if loss == "euclidean":
        return scale * (2 * dots - square)
    return scale * dots / square.clamp(min=torch.finfo(square.dtype).tiny).sqrt()


def loss_gradient(
    prototypes: torch.Tensor,
    way_mask: torch.Tensor,
    query: torch.Tensor,
    query_mask: torch.Tensor,
    labels: torch.Tensor,
    loss: str,
    scale: torch.Tensor | float,
    per_class: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean query loss (T,) and its gradient with respect to every prototype (T, W, D).

    With per_class the gradient of every class is scaled by its own positive factor, so that it keeps its direction
    even where the softmax is so sure of itself that the true gradient would underflow to zero.
    """
    import torch

    if loss == "euclidean":
        logits = 2 * query @ prototypes.transpose(1, 2) - (prototypes**2).sum(dim=2)[:, None, :]
    else:
        length = prototypes.norm(dim=2, keepdim=True).clamp(min=_least(query))
        direction = prototypes / length
        query = normalised(query)
        logits = query @ direction.transpose(1, 2)
    logits = (scale * logits).masked_fill(~way_mask[:, None, :], -torch.inf)
    log_p = logits - logits.logsumexp(dim=2, keepdim=True)
    true = labels[:, :, None] == torch.arange(logits.shape[2], device=logits.device)
    count = query_mask.sum(dim=1).clamp(min=1)
    mean_loss = -(log_p.gather(2, labels[:, :, None])[:, :, 0].masked_fill(~query_mask, 0)).sum(dim=1) / count
    # p - 1 of the true class is minus the sum of the others: exact also where p is nearly 1
    log_rest = log_p.masked_fill(true, -torch.inf).logsumexp(dim=2, keepdim=True)
    log_size = torch.where(true, log_rest, log_p).masked_fill(~query_mask[:, :, None], -torch.inf)
    if per_class:
        top = log_size.amax(dim=1, keepdim=True)
        log_size = log_size - torch.where(top.isfinite(), top, 0)
    residual = torch.where(true, -1.0, 1.0) * log_size.exp() / count[:, None, None]
    if loss == "euclidean":
        gradient = 2 * (residual.transpose(1, 2) @ query - residual.sum(dim=1)[:, :, None] * prototypes)
    else:
        pull = residual.transpose(1, 2) @ query
        gradient = (pull - (pull * direction).sum(dim=2, keepdim=True) * direction) / length
    return mean_loss, scale * gradient
