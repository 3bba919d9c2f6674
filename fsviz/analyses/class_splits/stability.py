"""How far splits from different random starts agree."""

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
    "Over how many seeds the agreement is taken, from the chosen one on.",
    "int",
    10,
    2,
    50,
)
DIMS = (2, 4, 8, 16, 32, 64)  # looked at beside all
SWEEP_SEEDS = 6  # seeds of every number of dimensions that is looked at
FEW_SEEDS = 3  # the same where little time is given


@dataclass(frozen=True)
class SplitAgreement:
    """How far several seeds find the same split.

    value     mean share of classes that two seeds put on the same side; 1 only if all find the same split
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
    """Agreement over `n_seeds` seeds, from the chosen one on."""
    first = checked(settings)["seed"]
    found = splits_over(dataset, classes, [{"seed": first + i} for i in range(SEEDS.check(n_seeds))], **settings)
    sides = np.stack([one.split.sides for one in found])
    n_splits = len(np.unique(sides, axis=0))
    shared = _agreement(sides)
    on_test = (shared["on_test"], shared["chance_on_test"])
    return SplitAgreement(shared["agreement"], shared["chance"], *on_test, n_splits, len(sides))


def _agreement(sides: np.ndarray) -> dict[str, float]:
    """Agreement of splits (S, M), and what it is by chance: of all sides, then of test classes."""
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
    """Agreement by number of dimensions: columns dims, those of `SplitAgreement`, reached, above_floor (the objective
    less M log M, mean over seeds). The last row has all dimensions."""
    spec = {**checked(settings), "mode": "stable"}
    most = classes.points.shape[1]
    rows: list[dict[str, Any]] = []
    tried = sorted({*(d for d in (*DIMS, spec["dims"]) if d < most), most})
    for i, dims in enumerate(tried):
        if progress:
            progress(i, len(tried), f"{dims:,} dimensions")
        seeds = [{"seed": spec["seed"] + s, "dims": dims} for s in range(n_seeds)]
        found = splits_over(dataset, classes, seeds, **spec)
        rows.append(
            {
                "dims": dims,
                **_agreement(np.stack([one.split.sides for one in found])),
                "reached": float(np.mean([cast(float, one.split.reached) for one in found])),
                "above_floor": float(np.mean([cast(float, one.objective) - one.floor for one in found])),
            }
        )
    return pd.DataFrame(rows)


def sweep_seconds(classes: ClassFeatures, spec: Mapping[str, Value], n_seeds: int = SWEEP_SEEDS) -> float:
    """The same for `agreement_over_dims`."""
    return sum(seconds(classes, {**spec, "mode": "stable", "dims": dims}, n_seeds) for dims in DIMS)
