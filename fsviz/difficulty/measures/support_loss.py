"""Support training loss of a logistic regression (Bontonou et al. 2020, definition 3)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Measure, MeasureInputs

MEASURE = Measure(
    "support_loss",
    "Support training loss",
    description="Cross-entropy of a logistic regression on the support after training, in nats. Compare tasks with the "
    "same ways and shots: larger tasks train for more steps.",
    formula=r"-\frac{1}{NK} \sum_{i=1}^{NK} \log p_{i, y_i}",
    symbols="N: classes of the task; K: support images per class; y_i: class of image i; p_ic: predicted probability "
    "of class c for image i",
    direction="harder",
    needs=("support",),
    paper="Bontonou et al. 2020",
    paper_name="training loss",
    order=10,
    cause="images",
)


def measure(inputs: MeasureInputs) -> np.ndarray:
    """Mean cross-entropy (T,) of the support images under the logistic regression that was trained on them, in nats."""
    from fsviz.difficulty.task_statistics import task_view
    from fsviz.methods.geometry import equal_shares, one_hot, with_ways

    view = task_view(inputs)
    scores = with_ways(view.scores[:, :, : view.n_support], view.ways)
    true = one_hot(view.support_mask, scores.dtype)
    own = (scores.masked_fill(true == 0, 0.0)).sum(1)
    share = equal_shares(view.support_mask.flatten(1), scores.dtype).squeeze(1)
    return (((scores.logsumexp(1) - own) * share).sum(1)).double().numpy()
