"""Ridge regression in closed form (R2D2, Bertinetto et al. 2019), inductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import Method, scale, weight_decay

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "ridge",
    "Ridge regression (R2D2)",
    "Bertinetto et al. 2019",
    2,
    "inductive",
    "Closed-form ridge regression on the support labels.",
    (weight_decay(1.0, "penalty", 1e-3, 1000.0), scale(10.0)),
    pairwise=True,
    family="Meta",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    penalty: float = 1.0,
    scale: float = 10.0,
) -> Tensor:
    """Least squares from features X (length one) to one-hot labels Y with a penalty on the weights.

    W = X' (X X' + penalty I)^-1 Y: the matrix to invert is as large as the support, not as the dimensions. The paper
    learns penalty and scale along with its backbone; here they are given.
    """
    import torch

    from fsviz.methods.geometry import blank, in_a_row, one_hot, unit, with_ways

    images, _ = in_a_row(support, support_mask)
    images, query = unit(images), unit(blank(query, query_mask))
    likeness = torch.bmm(images, images.transpose(1, 2))
    # a padded image is a zero row: the penalty alone keeps the matrix regular, and its label is zero too
    likeness.diagonal(dim1=1, dim2=2).add_(penalty)
    factor = torch.linalg.cholesky(likeness)
    dual = torch.cholesky_solve(one_hot(support_mask, images.dtype).transpose(1, 2), factor)
    scores = torch.bmm(dual.transpose(1, 2), torch.bmm(images, query.transpose(1, 2)))
    return with_ways(scale * scores, support_mask.any(2))
