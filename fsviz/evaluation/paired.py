"""Runs against runs on the same tasks: paired differences and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.evaluation.accuracy import accuracy_by_quantile
from fsviz.numerics import mean_and_ci95


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy of one run minus that of another, task by task.

    mean and ci95 (half-width) of the differences; p_t and p_wilcoxon, two-sided, small when chance alone would
    seldom give such differences (NaN with fewer than two tasks); wins, ties, losses of the first run.
    """

    n_tasks: int
    mean: float
    ci95: float
    p_t: float
    p_wilcoxon: float
    wins: int
    ties: int
    losses: int

    @property
    def significant(self) -> bool:
        """Both tests below 5%."""
        return self.p_t < 0.05 and self.p_wilcoxon < 0.05


def paired_difference(first: np.ndarray, second: np.ndarray) -> PairedDifference:
    """Compares the accuracies (T,) of two runs of the same tasks; tasks that one of them lacks are excluded."""
    from scipy import stats

    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        raise BadInput(
            f"A paired comparison needs two runs of the same tasks. Got {len(first)} and {len(second)} tasks: "
            "evaluate both on one testbed."
        )
    # accuracies are ratios of counts: rounding turns 0.6 - 0.6 computed two ways into a tie
    difference = np.round(first - second, 9)
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    mean, half = mean_and_ci95(difference)
    if n < 2:
        p_t = p_wilcoxon = float("nan")
    elif np.ptp(difference) == 0:  # no spread: the t statistic is 0/0 or infinite
        p_t = 1.0 if difference[0] == 0 else 0.0
        p_wilcoxon = 1.0 if difference[0] == 0 else float(stats.wilcoxon(difference).pvalue)
    else:
        p_t = float(stats.ttest_1samp(difference, 0.0).pvalue)
        p_wilcoxon = float(stats.wilcoxon(difference).pvalue)
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return PairedDifference(n, float(mean), float(half), p_t, p_wilcoxon, wins, n - wins - losses, losses)


def method_ranks(accuracies: Mapping[str, np.ndarray], measure: np.ndarray, n_bins: int = 4) -> pd.DataFrame:
    """Rank of every method by mean accuracy inside each quantile group of a measure (1 = best, ties share the mean).

    Columns method, bin (1..n_bins), accuracy, ci95, rank. All methods are compared on the tasks they share.
    """
    if not accuracies:
        raise BadInput("There is no run to rank. Choose at least one.")
    lengths = {name: len(values) for name, values in accuracies.items()}
    if set(lengths.values()) != {len(measure)}:
        raise BadInput(
            f"Ranks need runs of the same {len(measure)} tasks. "
            f"Got {', '.join(f'{name} with {n}' for name, n in lengths.items())}."
        )
    shared = np.isfinite(np.stack([np.asarray(v, dtype=float) for v in accuracies.values()])).all(0)
    parts = [
        accuracy_by_quantile(np.where(shared, values, np.nan), measure, n_bins).assign(method=name)
        for name, values in accuracies.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    table["rank"] = table["accuracy"].round(9).groupby(table["bin"]).rank(ascending=False, method="average")
    return table[["method", "bin", "accuracy", "ci95", "rank"]]
