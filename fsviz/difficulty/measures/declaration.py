"""What a measure of difficulty says of itself, and what it may be given."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fsviz.errors import Missing
from fsviz.records import Predictions
from fsviz.settings import Setting, Unchecked

if TYPE_CHECKING:
    import torch

Need = Literal["distances", "confusions", "images", "support", "queries", "predictions"]
NEEDS: dict[Need, str] = {
    "distances": "how far apart the classes are, by a taxonomy or by features",
    "confusions": "how much every pair of classes is mixed up by the backbone",
    "images": "features of a task's images, with or without labels",
    "support": "features and labels of the support images",
    "queries": "features of the query images, without their labels",
    "predictions": "answers to the queries, and with them the queries' labels",
}

LABELS: dict[Need, str] = {  # that it takes to know it; what is not here takes none
    "distances": "which classes the task has",
    "confusions": "which classes the task has, and those of all their images",
    "support": "those of the support images",
    "predictions": "those of the queries",
}

_LACKING: Any = None  # a measure is called only with what it needs, so it need not ask again


@dataclass(frozen=True)
class Given:
    """What is known of T tasks; a measure takes what it needs, and the rest may be missing.

    positions     (T, W) places of the tasks' classes in the two matrices, PAD where a task has fewer ways
    distances     (C, C) between classes, symmetric, zero diagonal
    confusions    (C, C) of pairs of classes, symmetric, in bits
    support       (T, W, S, D) features, support_mask (T, W, S) True where an image is; torch, as methods take them
    query         (T, M, D) features, all queries of a task in one row, query_mask (T, M)
    predictions   what a method said of the queries
    settings      of the measures, by name
    """

    positions: np.ndarray = _LACKING
    distances: np.ndarray = _LACKING
    confusions: np.ndarray = _LACKING
    support: torch.Tensor = _LACKING
    support_mask: torch.Tensor = _LACKING
    query: torch.Tensor = _LACKING
    query_mask: torch.Tensor = _LACKING
    predictions: Predictions = _LACKING
    settings: Unchecked = field(default_factory=dict)

    def has(self, need: Need) -> bool:
        holder = {"queries": "query", "images": "support"}.get(need, need)
        return getattr(self, holder) is not None


@dataclass(frozen=True)
class Measure:
    """One number per task that says how hard it is, declared beside the function that computes it.

    place      where it stands in lists
    words      what it tells, as an axis or a sentence says it: "how far apart in meaning the classes of a task are"
    what       what it is and why it should matter, in two sentences for a student
    formula    LaTeX; symbols names every symbol in it
    direction  whether a task with a higher value is "harder" or "easier"
    needs      what it is computed from: what must be there before it can be known
    """

    name: str
    title: str
    words: str
    what: str
    formula: str
    symbols: str
    direction: Literal["harder", "easier"]
    needs: tuple[Need, ...]
    paper: str
    place: int
    settings: tuple[Setting, ...] = ()

    @property
    def axis(self) -> str:
        """What stands along an axis."""
        return f"{self.words} ({self.title[:1].lower()}{self.title[1:]})"

    @property
    def labels(self) -> str:
        """The labels it uses, in words."""
        return " and ".join(LABELS[need] for need in self.needs if need in LABELS) or "none"

    def load(self) -> Callable[[Given], np.ndarray]:
        """The function (Given) -> (T,) float64, NaN for a task it is not defined for."""
        return importlib.import_module(f"fsviz.difficulty.measures.{self.name}").measure

    def __call__(self, given: Given) -> np.ndarray:
        lacking = [NEEDS[need] for need in self.needs if not given.has(need)]
        if lacking:
            raise Missing(f"{self.title} needs {' and '.join(lacking)}. Give it that, or choose another measure.")
        return self.load()(given)
