"""Training loss of a logistic regression: what is learned slowly is hard (Bontonou et al. 2020, definition 3)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure

MEASURE = Measure(
    "support_loss",
    "Training loss",
    words="what the loss of a logistic regression is at the end of its training",
    what="A logistic regression is trained on the support for 50 passes in mini-batches of five images. This is its "
    "cross-entropy on the support when it stops, in nats. It falls fast where the classes are easy to part, so what is "
    "left of it tells how hard the task is. More ways or shots mean more steps, so compare tasks of the same size.",
    formula=r"-\frac{1}{NK} \sum_{i=1}^{NK} \log p_{i, y_i}",
    symbols="N: classes of the task; K: support images per class; y_i: the class of image i; p_ic: the probability "
    "that the regression gives class c for image i",
    direction="harder",
    needs=("support",),
    paper="Bontonou et al. 2020",
    place=10,
    cause="images",
)


def measure(given: Given) -> np.ndarray:
    """Mean cross-entropy (T,) of the support images under the logistic regression that was trained on them, in nats."""
    from fsviz.difficulty.task_statistics import seen
    from fsviz.methods.geometry import equal_shares, one_hot, with_ways

    view = seen(given)
    scores = with_ways(view.scores[:, :, : view.n_support], view.ways)
    true = one_hot(view.support_mask, scores.dtype)
    own = (scores.masked_fill(true == 0, 0.0)).sum(1)
    share = equal_shares(view.support_mask.flatten(1), scores.dtype).squeeze(1)
    return (((scores.logsumexp(1) - own) * share).sum(1)).double().numpy()
