"""Hard tasks without a search: draw many random tasks and keep those of lowest accuracy (Basu et al. 2023, appendix Q).

How rare is a random task as hard as a searched one? Given the images, random tasks are (nearly) independent draws, so
that the number of tasks as hard among n of them is binomial: its exact interval is taken (Clopper and Pearson 1934).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput

PAPER_SHARE = 50  # the paper keeps 200 of 10,000 tasks


@dataclass(frozen=True)
class Rarity:
    """Mean number of random tasks to sample until one is as hard as requested.

    n_found    of n_drawn tasks reach at_most this accuracy or less
    draws      n_drawn / n_found; infinite if none was found
    low, high  its 95% interval; high is infinite if none was found
    """

    at_most: float
    n_found: int
    n_drawn: int
    draws: float
    low: float
    high: float


def hardest(accuracy: np.ndarray, n_kept: int) -> np.ndarray:
    """Positions (n_kept,) of the tasks of lowest accuracy, in the order of the tasks; equal ones: the first."""
    return np.sort(np.argsort(accuracy, kind="stable")[:n_kept])


def rarity(accuracy: np.ndarray, at_most: float) -> Rarity:
    """Rarity of tasks with an accuracy of `at_most` or less among random tasks with these accuracies (T,)."""
    from scipy import stats

    n_drawn = len(accuracy)
    if not n_drawn:
        raise BadInput("How rare a hard task is needs at least one random task. Got none.")
    n_found = int((np.asarray(accuracy) <= at_most + 1e-9).sum())  # at_most is a mean: room for its rounding
    share = stats.binomtest(n_found, n_drawn).proportion_ci(0.95, method="exact")
    once = (n_drawn / n_found if n_found else np.inf, 1 / share.high, 1 / share.low if share.low > 0 else np.inf)
    return Rarity(float(at_most), n_found, n_drawn, *map(float, once))


def draws_needed(accuracy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every accuracy that was reached, ascending, and after how many random tasks on average one is as hard."""
    reached, counts = np.unique(accuracy, return_counts=True)
    return reached, len(accuracy) / counts.cumsum()
