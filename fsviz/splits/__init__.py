"""Splits of classes with a target divergence between train and test (ATG, Arnold & Sha 2021), and trees of classes.

Takes matrices and groups, gives sides of classes; reads and writes nothing.

class_features  mean features of classes: the points
clustering      the penalised objective, its divergences, the best of many starts
gaussians       how far two groups of classes are apart as Gaussians
optimizers      L-BFGS and the authors' gradient descent, many problems at once
assignment      from scores to train, val and test classes; agreement over seeds; random and superclass-wise splits
trees           Ward trees, hops between classes, two trees facing each other
"""

from __future__ import annotations

from fsviz.settings import SEED, Setting
from fsviz.splits.clustering import DIVERGENCES, SOLVERS

TARGETED_MODES = ("stable", "paper")  # the modes with a target divergence
MODES = {
    "stable": "Stable",
    "paper": "As published",
    "random": "Random",
    "superclasses": "By superclass",
}
MODE = Setting(
    "mode",
    "Split mode",
    "Stable: few dimensions, best of many starts, so other seeds give the same split. As published "
    "(paper): all dimensions, one start (Arnold & Sha 2021). Random and By superclass are baselines.",
    "choice",
    "stable",
    choices=MODES,
)
DIVERGENCE = Setting(
    "divergence",
    "Target divergence (R)",
    "Distance between train and test classes; 0 makes them alike. Paper: 0.04 (easy), 0.32, 0.64 and 0.96 (hard).",
    "float",
    0.96,
    0,
    100,
    step=0.04,
    typical=6,
)
DIVERGENCE_BY = Setting(
    "divergence_by",
    "Divergence",
    "Divergence of the two distributions over classes. Paper: symmetrised KL.",
    "choice",
    "symmetric_kl",
    choices={name: divergence.title for name, divergence in DIVERGENCES.items()},
    advanced=True,
)
PENALTY = Setting(
    "penalty",
    "Divergence weight (λ)",
    "Penalty for missing the target divergence, relative to the fit of the two centroids. Mode stable "
    "uses 10, which usually reaches the target; mode paper uses 1, as published.",
    "float",
    10.0,
    0,
    1000,
    step=0.1,
    typical=30,
    advanced=True,
)
PUBLISHED_PENALTY = 1.0
DIMS = Setting(
    "dims",
    "Dimensions",
    "Principal axes of the class features in mode stable: one per four classes, at most 8. With about "
    "half as many as there are classes, the objective no longer determines a split.",
    "int",
    8,
    1,
    2048,
    typical=64,
    advanced=True,
)
CLASSES_PER_DIM = 4  # of the default; 14 classes on 8 axes are split by the random start, on 3 they choose


def default_penalty(mode: str) -> float:
    """The weight λ of a mode if none is given."""
    return PUBLISHED_PENALTY if mode == "paper" else float(PENALTY.default)


def default_dims(n_classes: int) -> int:
    """Dimensions in which so many classes still determine their split."""
    return max(2, min(int(DIMS.default), n_classes // CLASSES_PER_DIM))


STARTS = Setting(
    "starts",
    "Random starts",
    "Random starts of mode stable; keeps the best.",
    "int",
    32,
    1,
    512,
    typical=128,
    advanced=True,
)
SOLVER = Setting(
    "solver",
    "Solver",
    "L-BFGS runs until it converges. SGD takes the authors' 7,000 steps (rate 0.1, momentum 0.9) and is slower.",
    "choice",
    "lbfgs",
    choices=SOLVERS,
    advanced=True,
)
SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        *(DIVERGENCE, MODE, DIMS, STARTS),
        SEED.with_(help="The same seed gives the same random starts."),
        *(DIVERGENCE_BY, PENALTY, SOLVER),
    )
}
