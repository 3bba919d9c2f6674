"""Best eigenvalue of the graph of a task's images (Bontonou et al. 2020, figure 11)."""

from __future__ import annotations

import numpy as np

from fsviz import evaluation
from fsviz.numerics import finite
from fsviz.studies.prediction.measured import CellSummary


def best_eigenvalue(
    eigenvalues: np.ndarray, outcome: np.ndarray, n_way: int, class_ids: np.ndarray | None = None
) -> CellSummary:
    """The eigenvalue (counted from 1) with the strongest correlation of the expected sign, and the N-th (figure 11).

    Its interval is over classes if `class_ids` are passed.
    """
    strength = np.full(eigenvalues.shape[1], np.nan)
    for i in range(1, eigenvalues.shape[1]):  # the first is always zero
        strength[i] = evaluation.correlation(outcome, eigenvalues[:, i]).value
    if not np.isfinite(strength).any():
        return {"best": None, "best_pearson": None, "nth_pearson": None}
    best = int(np.nanargmin(strength))
    best_correlation = evaluation.correlation(outcome, eigenvalues[:, best], class_ids)
    return {
        "best": best + 1,
        "best_pearson": best_correlation.value,
        "best_low": finite(best_correlation.low),
        "best_high": finite(best_correlation.high),
        "nth_pearson": finite(strength[n_way - 1]) if n_way <= len(strength) else None,
    }
