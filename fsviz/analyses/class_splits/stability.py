"""Agreement of splits from different random starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from fsviz.analyses.class_splits.search import ClassFeatures, checked, seconds, splits_over
from fsviz.records import Dataset, Progress
from fsviz.settings import Setting, Value
from fsviz.splits import assignment

SEEDS = Setting(
    "seeds",
    "Seeds compared",
    "Number of seeds whose splits are compared, starting at the chosen seed.",
    "int",
    10,
    2,
    50,
)
DIMS = (2, 4, 8, 16, 32, 64)  # compared with all dimensions
SWEEP_SEEDS = 6  # seeds per number of dimensions
FEW_SEEDS = 3  # the same on a shared server with a short limit


@dataclass(frozen=True)
class SplitAgreement:
    """Agreement of several seeds.

    value     mean share of classes that two seeds put on the same side; 1 only if all splits are the same
    chance    the same for two random splits, on average
    on_test   mean share of test classes that two seeds have in common, and `chance_on_test` of two random splits
    n_splits  different splits among n_seeds
    """

    value: float
    chance: float
    on_test: float
    chance_on_test: float
    n_splits: int
    n_seeds: int


def agreement(
    dataset: Dataset, classes: ClassFeatures, n_seeds: int = int(SEEDS.default), **settings: Any
) -> SplitAgreement:
    """Agreement across `n_seeds` seeds, starting at the chosen one."""
    first = checked(settings)["seed"]
    results = splits_over(dataset, classes, [{"seed": first + i} for i in range(SEEDS.check(n_seeds))], **settings)
    sides = np.stack([result.split.sides for result in results])
    n_splits = len(np.unique(sides, axis=0))
    shared = _agreement(sides)
    on_test = (shared["on_test"], shared["chance_on_test"])
    return SplitAgreement(shared["agreement"], shared["chance"], *on_test, n_splits, len(sides))


def _agreement(sides: np.ndarray) -> dict[str, float]:
    """Agreement of splits (S, M) on all sides and on test classes, with the values expected by chance."""
    return {
        "agreement": assignment.agreement(sides),
        "chance": assignment.expected_agreement(sides.shape[1]),
        "on_test": assignment.agreement_on_test(sides),
        "chance_on_test": assignment.expected_test_agreement(sides.shape[1]),
    }


def agreement_over_dims(
    dataset: Dataset,
    classes: ClassFeatures,
    n_seeds: int = SWEEP_SEEDS,
    progress: Progress | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Agreement by number of dimensions; the last row has all of them.

    Columns dims, those of `SplitAgreement`, reached, above_floor (the objective minus M log M, mean over seeds).
    """
    spec = {**checked(settings), "mode": "stable"}
    most = classes.points.shape[1]
    rows: list[dict[str, Any]] = []
    tried = sorted({*(d for d in (*DIMS, spec["dims"]) if d < most), most})
    for i, dims in enumerate(tried):
        if progress:
            progress(i, len(tried), f"{dims:,} dimensions")
        seeds = [{"seed": spec["seed"] + s, "dims": dims} for s in range(n_seeds)]
        results = splits_over(dataset, classes, seeds, **spec)
        rows.append(
            {
                "dims": dims,
                **_agreement(np.stack([result.split.sides for result in results])),
                "reached": float(np.mean([cast(float, result.split.reached) for result in results])),
                "above_floor": float(np.mean([cast(float, result.objective) - result.floor for result in results])),
            }
        )
    return pd.DataFrame(rows)


def sweep_seconds(classes: ClassFeatures, spec: Mapping[str, Value], n_seeds: int = SWEEP_SEEDS) -> float:
    """Estimated seconds of `agreement_over_dims`."""
    return sum(seconds(classes, {**spec, "mode": "stable", "dims": dims}, n_seeds) for dims in DIMS)
