"""Which eigenvalue of the graph of a task's images follows the outcome best (figure 11)."""

from __future__ import annotations

import numpy as np

from fsviz import evaluation
from fsviz.numerics import finite
from fsviz.studies.prediction.measured import CellSummary


def best_eigenvalue(
    eigenvalues: np.ndarray, outcome: np.ndarray, n_way: int, class_ids: np.ndarray | None = None
) -> CellSummary:
    """The eigenvalue (counted from 1) that follows the outcome best in the direction it should, beside the N-th
    (figure 11); its interval is over the classes of the tasks where these are known."""
    strength = np.full(eigenvalues.shape[1], np.nan)
    for i in range(1, eigenvalues.shape[1]):  # the first is always zero
        strength[i] = evaluation.correlation(outcome, eigenvalues[:, i]).value
    if not np.isfinite(strength).any():
        return {"best": None, "best_pearson": None, "nth_pearson": None}
    best = int(np.nanargmin(strength))
    by_rank = evaluation.correlation(outcome, eigenvalues[:, best], class_ids)
    return {
        "best": best + 1,
        "best_pearson": by_rank.value,
        "best_low": finite(by_rank.low),
        "best_high": finite(by_rank.high),
        "nth_pearson": finite(strength[n_way - 1]) if n_way <= len(strength) else None,
    }
